#include "island/plan_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/check.h"
#include "core/statistics.h"
#include "island/random_tokens.h"
#include "island/strand_planning.h"

namespace atl {
namespace {

constexpr double kReplaySeconds = 10;  // of timed steps
constexpr std::size_t kMostTurns = 5;
constexpr std::uint64_t kSeed = 1;

class Replay {
  public:
    Replay(const IslandOptions& options, const IslandLinks& links) : links_(links), whole_(options, links) {
        whole_.initialise(kSeed);
    }

    // Of one step by this plan, of the slowest rank.
    double step(const StrandPlan& plan) {
        Island& island = plan.halves_micro_batches ? halves() : whole_;
        island.set_plan(std::make_shared<const StrandPlan>(plan));
        fill_with_random_tokens(island, random_, steps_++);
        double seconds = island.step(island.options().optim.lr).seconds;
        links_.world->all_reduce_max(view_of(std::span(&seconds, 1)), island.options().collective_timeout);
        return seconds;
    }

  private:
    Island& halves() {
        if (!halves_) {
            halves_ = std::make_unique<Island>(with_halves(whole_.options()), links_);
            halves_->initialise(kSeed);
        }
        return *halves_;
    }

    const IslandLinks& links_;
    RandomStream random_{kSeed, "replay tokens"};
    std::int64_t steps_ = 0;
    Island whole_;
    std::unique_ptr<Island> halves_;
};

}  // namespace

std::vector<TriedPlan> replay_plans(const IslandOptions& options, const IslandLinks& links,
                                    const std::vector<StrandPlan>& plans) {
    IslandOptions island = options;
    StrandPlan serial = without_interleaving(plans.front());
    island.plan = std::make_shared<const StrandPlan>(serial);
    std::vector<TriedPlan> tried{{std::move(serial)}};
    for (const StrandPlan& plan : plans)
        if (plan.interleaves) tried.push_back({plan});
    Replay replay(island, links);
    std::vector<std::vector<double>> seconds(tried.size());
    double turn_seconds = 0;
    for (const TriedPlan& candidate : tried) turn_seconds += replay.step(candidate.plan);  // not counted
    const auto turns =
        std::clamp<std::size_t>(static_cast<std::size_t>(kReplaySeconds / turn_seconds), 1, kMostTurns);
    for (std::size_t turn = 0; turn < turns; ++turn)
        for (std::size_t i = 0; i < tried.size(); ++i) seconds[i].push_back(replay.step(tried[i].plan));
    for (std::size_t i = 0; i < tried.size(); ++i) tried[i].median_seconds = median(std::move(seconds[i]));
    return tried;
}

StrandPlan fastest_plan(const std::vector<TriedPlan>& tried) {
    ATOLL_CHECK(tried.size() > 1 && !tried.front().plan.interleaves,
                "a serial step and plans to compare with it");
    const double serial_seconds = tried.front().median_seconds;
    const auto best =
        std::ranges::min_element(tried.begin() + 1, tried.end(), {}, &TriedPlan::median_seconds);
    StrandPlan plan = best->plan;
    plan.reason = fmt::format("the fastest of {} plans took {:.4g} ms a step, a serial step {:.4g} ms",
                              tried.size() - 1, 1e3 * best->median_seconds, 1e3 * serial_seconds);
    if (best->median_seconds <= (1 - kLeastGain) * serial_seconds) return plan;
    return without_interleaving(std::move(plan));
}

}  // namespace atl
