#include "island/strand_planning.h"

#include <fmt/format.h>

#include "core/error.h"
#include "island/island_programs.h"
#include "program/checker.h"
#include "program/placement.h"
#include "program/saved_activations.h"
#include "program/schedule.h"
#include "program/virtual_executor.h"

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
        return fmt::format("the plan is stale: {}", stale);
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

StrandPlan plan_from_files(const IslandOptions& options, const FileSystem& files) {
    if (!options.plan_file.empty()) {
        auto plan = strand_plan_from_json(files.read_text(options.plan_file), options.plan_file);
        if (objection(options, Rank(0), plan).empty()) check_order(options, plan);
        return plan;
    }
    if (options.profile_file.empty())
        return plan_of(options, costs_of(kTypicalRates, step_fingerprint(options)));
    const auto profile = op_profile_from_json(files.read_text(options.profile_file), options.profile_file);
    if (const auto stale = difference(step_fingerprint(options), profile.fingerprint); !stale.empty())
        return serial_plan(fmt::format("{} is stale: {}", options.profile_file, stale));
    return plan_of(options, costs_of(profile));
}

double serial_seconds_of(const IslandOptions& options, const StepCosts& costs) {
    std::vector<Program> programs;
    std::vector<std::vector<double>> seconds;
    for (const StepOps& step : training_steps(options)) {
        programs.push_back(serial_schedule(step));
        seconds.push_back(costs.op_seconds(programs.back()));
    }
    return execute_virtually(programs, seconds, ExecutionMode::serial, costs.overlap).step_seconds;
}

// Decides whether a plan stays within what strands may take beyond the same step without them, on the fullest rank: 3 %, or
// one layer's activations if that is more. Options that name a budget allow what the table takes of it.
class MemoryBound {
  public:
    MemoryBound(const IslandOptions& options, const std::vector<StepOps>& steps, const ScheduleTable& table)
        : table_(table) {
        if (options.memory_micro_batches > 0) return;
        for (std::int32_t stage = 0; stage < options.parallel.pp; ++stage)  // others of a stage run the same
            steps_.push_back(
                &steps[static_cast<std::size_t>(rank_at(options.parallel, {.pp = stage}).value())]);
        std::vector<Program> programs = programs_of(serial_plan(""));
        const std::int64_t bytes = peak_bytes(programs);
        allowed_bytes_ = bytes + std::max(bytes * 3 / 100, saved_layer_bytes(programs));
    }

    bool fits(const StrandPlan& plan) const {
        if (!plan.interleaves || steps_.empty()) return true;
        auto programs = programs_of(plan);
        return peak_bytes(programs) <= allowed_bytes_;
    }

  private:
    std::vector<Program> programs_of(const StrandPlan& plan) const {
        std::vector<Program> programs;
        for (const StepOps* step : steps_) programs.push_back(planned_program(*step, table_, plan));
        return programs;
    }
    static std::int64_t peak_bytes(std::vector<Program>& programs) {
        std::int64_t most = 0;
        for (Program& program : programs) most = std::max(most, place(program).peak_bytes());
        return most;
    }

    std::vector<const StepOps*> steps_;  // [stage]; none: no bound
    const ScheduleTable& table_;
    std::int64_t allowed_bytes_ = 0;
};

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
    options.memory_micro_batches = 3;  // two forwards run beside each other, and two backwards
    return options;
}

bool may_halve(const IslandOptions& options) {
    const bool is_one = options.batch.micro_batches() == options.parallel.dp && options.parallel.pp == 1;
    return is_one && options.batch.micro_batch % 2 == 0;
}

std::vector<StrandPlan> candidate_plans(const IslandOptions& options, StepCosts costs, std::size_t most) {
    const auto candidates_as = [&](const IslandOptions& cut) {
        costs.fingerprint = step_fingerprint(cut);
        const auto steps = training_steps(cut);
        const auto table = training_table(cut);
        const MemoryBound bound(cut, steps, table);
        // Bytes of a plan are known when it is placed; with less to spare it takes fewer of them.
        for (const double spare_layers : {1.0, 0.5, 0.0}) {
            auto plans = candidate_plans(steps, table, costs, most, spare_layers);
            std::erase_if(plans, [&](const StrandPlan& plan) { return !bound.fits(plan); });
            if (!plans.empty()) return plans;
        }
        StrandPlan none = serial_plan("every plan takes more memory than strands may");
        none.costs = costs.source;
        none.fingerprint = costs.fingerprint;
        return std::vector{none};
    };
    if (!may_halve(options)) return candidates_as(options);
    std::vector<StrandPlan> halves = candidates_as(with_halves(options));
    const double whole = serial_seconds_of(options, costs);
    for (StrandPlan& plan : halves) {
        const double gain = 1 - plan.predicted.event_seconds / whole;
        if (!plan.interleaves || gain < kLeastGain) {
            plan = serial_plan(fmt::format(
                "the step has 1 micro-batch, and two halves of it save {:.1f} % of it, less than {:.0f} %",
                100 * gain, 100 * kLeastGain));
            continue;
        }
        plan.halves_micro_batches = true;
        plan.predicted.serial_seconds = whole;
        plan.reason = fmt::format(
            "two halves of the one micro-batch are predicted to save {:.1f} % of a step", 100 * gain);
    }
    if (halves.front().interleaves)
        std::erase_if(halves, [](const StrandPlan& plan) { return !plan.interleaves; });
    else
        halves.resize(1);
    return halves;
}

StrandPlan plan_of(const IslandOptions& options, const StepCosts& costs) {
    return candidate_plans(options, costs, 1).front();
}

StrandPlan proposed_plan(const IslandOptions& options, const FileSystem& files) {
    try {
        return plan_from_files(options, files);
    } catch (const UserError& error) {
        return serial_plan(error.problems().front());
    } catch (const WorldError& error) {
        return serial_plan(error.what());
    }
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
