#include "island/measured_plan.h"

#include "island/strand_planning.h"

namespace atl {
namespace {

constexpr std::size_t kMostPlans = 3;  // to be tried for real

}  // namespace

MeasuredPlan measure_plan(const ProfilerOptions& options, const IslandLinks& links,
                          const std::filesystem::path& profile_file, FileSystem& files) {
    MeasuredPlan measured{.profile = find_op_profile(options, links, profile_file, files)};
    const auto candidates = candidate_plans(options.island, costs_of(measured.profile.profile), kMostPlans);
    if (!candidates.front().interleaves) {
        measured.plan = candidates.front();
        return measured;
    }
    measured.tried = replay_plans(options.island, links, candidates);
    measured.plan = fastest_plan(measured.tried);
    return measured;
}

}  // namespace atl
