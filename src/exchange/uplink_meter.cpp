#include "exchange/uplink_meter.h"

#include <utility>

namespace atl {

namespace {

constexpr Milliseconds kShortest{250};
constexpr double kNewest = 0.5;  // weight of the newest measurement

}  // namespace

void UplinkMeter::sample(std::int64_t arrived, std::size_t busy, TimePoint now) {
    const std::size_t before = std::exchange(busy_, busy);
    if (busy < before) end_stretch();
    if (busy == 0) is_measured_ = false;
    if (busy == 0 || busy < before || before == 0) before_ = arrived;
    if (busy == 0 || is_measured_ || arrived == before_) return;
    last_ = {now, arrived};
    if (!first_) first_ = last_;
}

void UplinkMeter::end_stretch() {
    if (!is_measured_ && first_ && last_->when - first_->when >= kShortest) {
        const double rate =
            static_cast<double>(last_->arrived - first_->arrived) / seconds(last_->when - first_->when);
        estimate_ = estimate_ == 0 ? rate : estimate_ + kNewest * (rate - estimate_);
        is_measured_ = true;
    }
    first_.reset();
    last_.reset();
}

}  // namespace atl
