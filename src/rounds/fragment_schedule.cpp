#include "rounds/fragment_schedule.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

// The fragment whose `moment` in the round is as many steps before a multiple of a round as these.
template <class Moment>
std::optional<FragmentId> fragment_at(const FragmentSchedule& schedule, Step steps_done, Moment moment) {
    if (steps_done <= schedule.first_step) return std::nullopt;
    for (int p = 0; p < schedule.fragments; ++p) {
        const std::int64_t since = steps_done.value() - moment(FragmentId(p)).value();
        if (since >= 0 && since % schedule.inner_steps == 0) return FragmentId(p);
    }
    return std::nullopt;
}

}  // namespace

void FragmentSchedule::check() const {
    ATOLL_CHECK(fragments > 0 && overlap_steps >= 0);
    ATOLL_CHECK_LE(fragments, inner_steps, "fragments against inner steps");
    ATOLL_CHECK_LE(overlap_steps, inner_steps / fragments, "overlap against the steps between two fragments");
}

Step FragmentSchedule::apply_step(FragmentId fragment) const {
    ATOLL_CHECK(fragment.value() >= 0 && fragment.value() < fragments, "fragment {} of {}", fragment,
                fragments);
    return Step(first_step.value() + (std::int64_t{fragment.value()} + 1) * inner_steps / fragments);
}

Step FragmentSchedule::start_step(FragmentId fragment) const {
    return Step(apply_step(fragment).value() - overlap_steps);
}

std::optional<FragmentId> FragmentSchedule::starts_after(Step steps_done) const {
    return fragment_at(*this, steps_done, [&](FragmentId fragment) { return start_step(fragment); });
}

std::optional<FragmentId> FragmentSchedule::applies_after(Step steps_done) const {
    return fragment_at(*this, steps_done, [&](FragmentId fragment) { return apply_step(fragment); });
}

std::int64_t fitting_overlap(std::int64_t overlap_steps, std::int64_t inner_steps, std::int64_t fragments) {
    return std::clamp<std::int64_t>(inner_steps / fragments - 1, 0, overlap_steps);
}

std::int64_t round_steps(std::int64_t inner_steps, std::int64_t left, std::int64_t fragments) {
    const std::int64_t steps = std::max(inner_steps, fragments);
    return left - steps < fragments ? left : steps;
}

}  // namespace atl
