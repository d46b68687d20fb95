#include "outer/fragment_schedule.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

// The fragment whose turn comes `delay` steps after its offset, or nothing.
std::optional<FragmentId> fragment_at(const FragmentSchedule& schedule, Step steps_done, int delay) {
    for (int p = 0; p < schedule.fragments; ++p) {
        const FragmentId fragment(p);
        const std::int64_t since = steps_done.value() - schedule.offset_steps(fragment) - delay;
        if (since > 0 && since % schedule.inner_steps == 0) return fragment;
    }
    return std::nullopt;
}

}  // namespace

void FragmentSchedule::check() const {
    ATOLL_CHECK(inner_steps > 0 && fragments > 0 && overlap_steps >= 0);
    ATOLL_CHECK_LE(fragments, inner_steps, "fragments against inner steps");
    ATOLL_CHECK_LT(overlap_steps * fragments, inner_steps,
                   "overlap steps times fragments against inner steps");
}

int FragmentSchedule::offset_steps(FragmentId fragment) const {
    ATOLL_CHECK(fragment.value() >= 0 && fragment.value() < fragments, "fragment {}", fragment);
    return static_cast<int>(std::int64_t{fragment.value()} * inner_steps / fragments);
}

std::optional<FragmentId> FragmentSchedule::starts_after(Step steps_done) const {
    return fragment_at(*this, steps_done, 0);
}

std::optional<FragmentId> FragmentSchedule::applies_after(Step steps_done) const {
    return fragment_at(*this, steps_done, overlap_steps);
}

bool FragmentSchedule::quiescent_after(Step steps_done) const {
    // Pending after this step: started at most τ − 1 steps ago.
    for (int age = 0; age < overlap_steps; ++age)
        if (starts_after(Step(steps_done.value() - age))) return false;
    return true;
}

FragmentId fragment_of_layer(std::optional<int> layer, int fragments) {
    ATOLL_CHECK(fragments > 0 && layer.value_or(0) >= 0);
    return FragmentId(layer.value_or(0) % fragments);
}

std::int64_t round_steps(Step first_step, int inner_steps, Step last_step) {
    ATOLL_CHECK(inner_steps > 0);
    ATOLL_CHECK_LE(first_step, last_step);
    return std::min<std::int64_t>(inner_steps, last_step.value() - first_step.value());
}

}  // namespace atl
