#include "island/strand_planning.h"

#include <fmt/format.h>

#include "core/error.h"
#include "island/island_programs.h"
#include "model/step_layout.h"
#include "program/checker.h"
#include "program/plan_step.h"

namespace atl {
namespace {

constexpr std::string_view kObjection = "no: ";

// Why this rank can't run the plan; empty if it can.
std::string objection(IslandOptions options, Rank rank, const StrandPlan& plan) {
    if (!plan.interleaves) return "";
    if (plan.halves_micro_batches) {
        if (options.batch.micro_batch % 2 != 0) return "a micro-batch has no two halves";
        options = with_halves(std::move(options));
    }
    if (const auto stale = difference(step_fingerprint(options), plan.fingerprint); !stale.empty())
        return stale;
    try {
        options.plan = std::make_shared<const StrandPlan>(plan);
        training_program(options, rank);
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

// A plan from a file may hold any order.
void check_order(const IslandOptions& options, const StrandPlan& plan) {
    IslandOptions planned = plan.halves_micro_batches ? with_halves(options) : options;
    planned.plan = std::make_shared<const StrandPlan>(plan);
    std::vector<Program> programs;
    for (std::int32_t rank = 0; rank < options.parallel.ranks(); ++rank)
        programs.push_back(training_program(planned, Rank(rank)));
    if (const auto problems = check_programs(programs); !problems.empty())
        throw UserError(fmt::format("[plan] {}: {}", options.plan_file, problems.front()));
}

// Of a file that the options name: that it can't be read is the user's to mend.
std::string text_of(const FileSystem& files, const std::string& file) {
    try {
        return files.read_text(file);
    } catch (const WorldError& error) {
        throw UserError(fmt::format("[plan] {}", error.what()));
    }
}

ProposedPlan stale(const std::string& file, const std::string& why) {
    const std::string reason = fmt::format("{} is stale: {}", file, why);
    return {serial_plan(reason), reason};
}

ProposedPlan plan_from_file(const IslandOptions& options, const FileSystem& files) {
    auto plan = strand_plan_from_json(text_of(files, options.plan_file), options.plan_file);
    if (const auto why = objection(options, Rank(0), plan); !why.empty())
        return stale(options.plan_file, why);
    check_order(options, plan);
    return {std::move(plan), ""};
}

ProposedPlan plan_from_profile(const IslandOptions& options, const FileSystem& files) {
    const auto profile = op_profile_from_json(text_of(files, options.profile_file), options.profile_file);
    if (const auto why = difference(step_fingerprint(options), profile.fingerprint); !why.empty())
        return stale(options.profile_file, why);
    try {
        return {plan_of(options, costs_of(profile)), ""};
    } catch (const UserError& error) {  // an op that it doesn't know: it is of another version
        return stale(options.profile_file, error.problems().front());
    }
}

void log_plan(const StrandPlan& plan, const Log& log) {
    if (!plan.interleaves) return log.warning("[plan] strands run serially: {}", plan.reason);
    log.info("[plan] strands are interleaved: {}; times from: {}; plan {}", plan.reason, plan.costs,
             plan.hash());
}

}  // namespace

bool plans_strands(const IslandOptions& options) {
    return options.schedule == ScheduleKind::strands && options.strand_order == StrandOrder::planned;
}

bool measures_plan(const IslandOptions& options) {
    return plans_strands(options) && options.plan_file.empty() && options.measures_profile &&
           options.parallel.ranks() > 1;
}

IslandOptions with_halves(IslandOptions options) {
    options.batch.micro_batch /= 2;
    options.memory_micro_batches = kMicroBatchesOfHalves;
    return options;
}

bool may_halve(const IslandOptions& options) {
    return may_halve(options.model, options.parallel, options.batch.micro_batches() / options.parallel.dp,
                     options.batch.micro_batch, options.batch.context);
}

std::vector<StrandPlan> candidate_plans(const IslandOptions& options, StepCosts costs, std::size_t most) {
    const auto plannable = [](const IslandOptions& cut) {
        return PlannableStep{.ranks = training_steps(cut),
                             .table = training_table(cut),
                             .fingerprint = step_fingerprint(cut),
                             .bounds_memory = cut.memory_micro_batches == 0};
    };
    const PlannableStep whole = plannable(options);
    if (!may_halve(options)) return plans_of_step(whole, nullptr, std::move(costs), most);
    const PlannableStep halves = plannable(with_halves(options));
    return plans_of_step(whole, &halves, std::move(costs), most);
}

StrandPlan plan_of(const IslandOptions& options, const StepCosts& costs) {
    return candidate_plans(options, costs, 1).front();
}

ProposedPlan proposed_plan(const IslandOptions& options, const FileSystem& files) {
    if (!options.plan_file.empty()) return plan_from_file(options, files);
    if (!options.profile_file.empty()) return plan_from_profile(options, files);
    return {plan_of(options, costs_of(kTypicalRates, step_fingerprint(options))), ""};
}

void agree_on_plan(IslandOptions& options, const IslandLinks& links, const StrandPlan& proposal,
                   const Log& log) {
    const bool is_gateway = links.rank == Rank(0);
    StrandPlan plan = proposal;
    if (links.world != nullptr) {
        const auto exchange = [&](const std::string& text) {
            return links.world->all_gather(text, options.collective_timeout);
        };
        plan = strand_plan_from_json(exchange(is_gateway ? to_json(proposal) : "").front(),
                                     "the gateway's plan");
        const auto mine = objection(options, links.rank, plan);
        const auto votes = exchange(mine.empty() ? plan.hash() : std::string(kObjection) + mine);
        for (std::size_t rank = 0; rank < votes.size(); ++rank)
            if (votes[rank] != votes.front() || votes[rank].starts_with(kObjection)) {
                plan = serial_plan(votes[rank].starts_with(kObjection)
                                       ? fmt::format("rank {} can't run the plan: {}", rank,
                                                     votes[rank].substr(kObjection.size()))
                                       : fmt::format("rank {} has another plan: {}", rank, votes[rank]));
                break;
            }
    } else if (const auto mine = objection(options, links.rank, plan); !mine.empty()) {
        plan = serial_plan(mine);
    }
    if (is_gateway) log_plan(plan, log);
    if (plan.halves_micro_batches) options = with_halves(std::move(options));
    options.plan = std::make_shared<const StrandPlan>(std::move(plan));
}

}  // namespace atl
