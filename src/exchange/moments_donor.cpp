#include "exchange/moments_donor.h"

#include <utility>

namespace atl {

namespace {

constexpr Milliseconds kKeptAfterLastRequest{30'000};

}  // namespace

std::vector<Frame> MomentsDonor::answer(const Frame& request, TimePoint now) {
    last_asked_ = now;
    if (is_published_) return published_.answer(request);
    if (!load_) {
        take({});
        return published_.answer(request);
    }
    if (!loading_.valid()) loading_ = std::async(std::launch::async, load_);
    return {};
}

void MomentsDonor::step(TimePoint now) {
    const bool is_read =
        loading_.valid() && loading_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (is_read) take(loading_.get());
    if (!is_published_ || now - last_asked_ < kKeptAfterLastRequest) return;
    published_.withdraw();
    kept_.reset();
    is_published_ = false;
}

void MomentsDonor::take(std::optional<KeptMoments> loaded) {
    kept_ = std::move(loaded);
    std::vector<std::span<const float>> parts;
    if (kept_) parts.assign(kept_->parts.begin(), kept_->parts.end());
    published_.publish(kept_ ? kept_->version : StateVersion(), std::move(parts));
    is_published_ = true;
}

std::int64_t MomentsDonor::bytes() const {
    std::int64_t elements = 0;
    if (kept_)
        for (const auto& part : kept_->parts) elements += static_cast<std::int64_t>(part.size());
    return elements * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace atl
