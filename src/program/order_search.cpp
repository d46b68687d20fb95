#include "program/order_search.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::size_t kLongestRun = 3;

class Climb {
  public:
    Climb(const StrandPair& pair, const OverlapModel& overlap, std::vector<std::int32_t> order,
          const OrderSearchOptions& options)
        : pair_(pair), options_(options), clock_(pair, overlap), trials_left_(options.most_trials) {
        found_.seconds = clock_.run(order);
        found_.order = std::move(order);
        is_bounded_ = options.most_bytes != std::numeric_limits<std::int64_t>::max();
        lower_bound_ = busiest_seconds(pair);
    }

    OrderFound run() {
        bool improved = true;
        while (improved && may_go_on()) {
            improved = false;
            for (std::size_t length = 1; length <= kLongestRun; ++length)
                for (std::size_t begin = 0; begin + length <= found_.order.size() && may_go_on(); ++begin)
                    if (may_move_from(begin)) improved = move_run(begin, length) || improved;
        }
        return std::move(found_);
    }

  private:
    bool may_go_on() const { return trials_left_ > 0 && found_.seconds > lower_bound_ * (1 + 1e-9); }
    bool may_move_from(std::size_t begin) const {
        return options_.places.empty() || std::ranges::any_of(options_.places, [&](const auto& places) {
                   return places.first <= begin && begin < places.second;
               });
    }

    bool waits(std::int32_t op, std::int32_t earlier) const {
        const auto& list = pair_.ops[static_cast<std::size_t>(op)].waits_for;
        return std::ranges::find(list, earlier) != list.end();
    }

    // Whether the run [begin, begin + length) may change places with the op at `other` beside it.
    bool may_pass(std::size_t begin, std::size_t length, std::size_t other) const {
        for (std::size_t i = begin; i < begin + length; ++i) {
            const auto& order = found_.order;
            if (other < begin ? waits(order[i], order[other]) : waits(order[other], order[i])) return false;
        }
        return true;
    }

    // Moves the run to the best place within reach, if one is better than where it stands.
    bool move_run(std::size_t begin, std::size_t length) {
        const auto reach = static_cast<std::size_t>(options_.reach);
        const auto home = found_.order;
        OrderFound best{{}, found_.seconds};
        auto order = home;
        for (std::size_t step = 1; step <= reach && step <= begin; ++step) {
            if (!may_pass(begin, length, begin - step)) break;
            const auto at = order.begin() + static_cast<std::ptrdiff_t>(begin - step);
            std::rotate(at, at + 1, at + 1 + static_cast<std::ptrdiff_t>(length));
            consider(order, best);
        }
        order = home;
        for (std::size_t step = 1; step <= reach && begin + length + step <= home.size(); ++step) {
            if (!may_pass(begin, length, begin + length + step - 1)) break;
            const auto at = order.begin() + static_cast<std::ptrdiff_t>(begin + step - 1);
            std::rotate(at, at + static_cast<std::ptrdiff_t>(length),
                        at + static_cast<std::ptrdiff_t>(length) + 1);
            consider(order, best);
        }
        if (best.order.empty()) return false;
        found_ = std::move(best);
        return true;
    }

    void consider(const std::vector<std::int32_t>& order, OrderFound& best) {
        --trials_left_;
        const double seconds = clock_.run(order, best.seconds);
        if (seconds >= best.seconds * (1 - 1e-9)) return;
        if (is_bounded_ && peak_bytes(pair_, order) > options_.most_bytes) return;
        best = {order, seconds};
    }

    const StrandPair& pair_;
    const OrderSearchOptions& options_;
    StrandClock clock_;
    std::int64_t trials_left_;
    bool is_bounded_ = false;
    double lower_bound_ = 0;
    OrderFound found_;
};

}  // namespace

OrderFound search_order(const StrandPair& pair, const OverlapModel& overlap, std::vector<std::int32_t> order,
                        const OrderSearchOptions& options) {
    return Climb(pair, overlap, std::move(order), options).run();
}

}  // namespace atl
