#include "island/strand_planner.h"

#include "core/error.h"
#include "island/island_programs.h"
#include "island/measured_plan.h"
#include "island/strand_planning.h"

namespace atl {
namespace {

constexpr const char* kLinks = "gloo";

// The plan that was kept, if it is for what runs now.
std::optional<StrandPlan> kept_plan(const IslandOptions& island, const std::filesystem::path& file,
                                    const FileSystem& files) {
    if (!files.exists(file)) return std::nullopt;
    try {
        StrandPlan plan = strand_plan_from_json(files.read_text(file), file.string());
        const IslandOptions cut =
            plan.halves_micro_batches && may_halve(island) ? with_halves(island) : island;
        if (difference(step_fingerprint(cut), plan.fingerprint).empty()) return plan;
    } catch (const UserError&) {  // it is made anew
    }
    return std::nullopt;
}

}  // namespace

StrandPlanner::StrandPlanner(const IslandLinks& links, FileSystem& files, Kept kept, Log log)
    : links_(links), files_(files), kept_(std::move(kept)), log_(std::move(log)) {}

void StrandPlanner::plan_at_start(IslandOptions& island) {
    if (!plans_strands(island)) return;
    auto proposal = is_gateway() ? known_plan(island) : std::nullopt;
    bool is_known = proposal.has_value();
    if (links_.world != nullptr) {
        const auto said = links_.world->all_gather(is_known ? "known" : "none", island.collective_timeout);
        is_known = said.front() == "known";
        if (!is_known) proposal = measure(island);
    }
    agree_on_plan(island, links_, proposal.value_or(StrandPlan{}), log_);
    is_halved_ = island.plan->halves_micro_batches;
    keep(*island.plan);
    if (may_halve(island) || links_.world == nullptr) return;  // another plan would give other bits
    plan_ = *island.plan;
    const double predicted =
        plan_.interleaves ? plan_.predicted.event_seconds : plan_.predicted.serial_seconds;
    const bool is_foreign = is_known && (!island.plan_file.empty() || !island.profile_file.empty());
    const double expected = plan_.step_seconds > 0 ? plan_.step_seconds : is_foreign ? predicted : 0;
    drift_.emplace(expected > 0 ? std::optional(expected) : std::nullopt);
}

std::optional<StrandPlan> StrandPlanner::known_plan(const IslandOptions& island) const {
    if (measures_plan(island)) return kept_plan(island, kept_.plan, files_);
    ProposedPlan proposed = proposed_plan(island, files_);
    if (proposed.stale.empty() || links_.world == nullptr) return std::move(proposed.plan);
    log_.warning("[plan] {}; another is made", proposed.stale);
    return kept_plan(island, kept_.plan, files_);
}

std::string StrandPlanner::add_step(double seconds) {
    if (!drift_) return "";
    const bool was_known = drift_->expected_seconds().has_value();
    std::string why = drift_->add_step(seconds);
    if (!was_known && drift_->expected_seconds()) {
        plan_.step_seconds = *drift_->expected_seconds();
        keep(plan_);
    }
    return why;
}

void StrandPlanner::plan_again(Island& island) {
    IslandOptions options = island.options();
    if (is_gateway()) files_.remove_all(kept_.profile);
    agree_on_plan(options, links_, measure(options), log_);
    island.set_plan(options.plan);
    plan_ = *options.plan;
    plan_.halves_micro_batches = is_halved_;
    keep(plan_);
    drift_.emplace(std::nullopt);
}

StrandPlan StrandPlanner::measure(const IslandOptions& island) const {
    if (is_gateway()) log_.info("[plan] measuring how long ops take, and trying plans of strands");
    return measure_plan({.island = island, .links = kLinks}, links_, kept_.profile, files_).plan;
}

void StrandPlanner::keep(const StrandPlan& plan) {
    if (is_gateway()) files_.write_text_atomically(kept_.plan, to_json(plan));
}

}  // namespace atl
