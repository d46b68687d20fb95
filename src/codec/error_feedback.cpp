#include "codec/error_feedback.h"

#include <algorithm>

#include "core/check.h"
#include "kernels/outer_step.h"

namespace atl {

ErrorFeedback::ErrorFeedback(std::int64_t elements, float beta)
    : beta_(beta), residual_(static_cast<std::size_t>(elements)) {}

std::span<const float> ErrorFeedback::begin(std::span<const float> delta) {
    ATOLL_CHECK(!is_open_, "the round before has not ended");
    ATOLL_CHECK_EQ(delta.size(), residual_.size());
    pending_.assign(delta.begin(), delta.end());
    kernels::add_weighted(residual_, beta_, pending_);
    is_open_ = true;
    return pending_;
}

void ErrorFeedback::commit(std::span<const float> decoded) {
    ATOLL_CHECK(is_open_, "no round to commit");
    kernels::subtract(pending_, decoded, residual_);
    restore();
}

void ErrorFeedback::restore() {
    is_open_ = false;
    pending_ = {};
}

void ErrorFeedback::set_residual(std::span<const float> residual) {
    ATOLL_CHECK(!is_open_, "a residual can't change inside a round");
    ATOLL_CHECK_EQ(residual.size(), residual_.size());
    std::ranges::copy(residual, residual_.begin());
}

}  // namespace atl
