#include "worker/rank_team.h"

#include <array>

#include "core/check.h"

namespace atl {
namespace {

constexpr Milliseconds kWaitInterval{1000};

// Orders travel as fp64, the collectives' only type that holds a step number exactly.
using Words = std::array<double, 6>;

Words encode(const RankOrder& order) {
    return {static_cast<double>(order.kind),  static_cast<double>(order.step),
            static_cast<double>(order.block), static_cast<double>(order.begin),
            static_cast<double>(order.end),   static_cast<double>(order.exit_code)};
}

RankOrder decode(const Words& words) {
    return {.kind = static_cast<RankOrder::Kind>(words[0]),
            .step = static_cast<std::int64_t>(words[1]),
            .block = static_cast<std::int64_t>(words[2]),
            .begin = static_cast<std::int64_t>(words[3]),
            .end = static_cast<std::int64_t>(words[4]),
            .exit_code = static_cast<int>(words[5])};
}

}  // namespace

RankTeam::RankTeam(IslandCollective* collective, const Clock& clock, Milliseconds timeout)
    : collective_(collective), clock_(clock), timeout_(timeout), last_sent_(clock.now()) {}

void RankTeam::announce(const RankOrder& order) {
    ATOLL_CHECK(is_gateway());
    if (collective_ == nullptr) return;
    Words words = encode(order);
    broadcast(words);
    last_sent_ = clock_.now();
}

void RankTeam::keep_alive() {
    if (clock_.now() - last_sent_ >= kWaitInterval) announce({});
}

RankOrder RankTeam::receive() {
    ATOLL_CHECK(!is_gateway());
    Words words{};
    do {
        broadcast(words);
    } while (decode(words).kind == RankOrder::Kind::wait);
    return decode(words);
}

void RankTeam::broadcast(std::span<double> words) {
    collective_->broadcast(view_of(words), Rank(0), timeout_);
}

}  // namespace atl
