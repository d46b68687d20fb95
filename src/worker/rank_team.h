// RankTeam: how the gateway tells the other ranks of its island what to do next. Every rank executes the same
// orders; only the gateway knows where they come from.
//
// The gateway may wait long for other sites. It then sends `wait` every second, so that no rank sits in a collective
// whose end depends on another site, and a dead gateway is noticed within the island's timeout.
//
// Threads: one caller. Errors: CommError when a rank of the island is lost. Cost: one broadcast of 48 bytes an order.
#pragma once

#include <cstdint>

#include "comm/island/collective.h"
#include "core/clock.h"
#include "core/ids.h"

namespace atl {

struct RankOrder {
    enum class Kind : std::uint8_t {
        wait = 0,             // nothing yet
        train = 1,            // one inner step: `step` (from 0) on data block `block`
        evaluate = 2,         // windows [begin, end)
        initialise = 3,       // parameters from the seed, moments zero
        give_parameters = 4,  // parameters to the gateway: of fragment `begin` of `end`, or all if `end` is 0
        take_parameters = 5,  // … and from it
        give_state = 6,       // all that the island holds to the gateway
        take_state = 7,       // … and from it, with the optimizer's count of steps
        plan_again = 8,       // the strands' order, from fresh measurements
        stop = 9,             // end with `exit_code`
        take_moments = 10,    // take_state without the parameters; then all moments back to the gateway
    };
    Kind kind = Kind::wait;
    std::int64_t step = 0;
    std::int64_t block = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    int exit_code = 0;

    static RankOrder train(std::int64_t step, std::int64_t block) {
        return {.kind = Kind::train, .step = step, .block = block};
    }
    static RankOrder move(Kind kind) { return {.kind = kind}; }  // initialise, give_…, take_…, plan_again
    static RankOrder move(Kind kind, FragmentId fragment, int fragments) {
        return {.kind = kind, .begin = fragment.value(), .end = fragments};
    }
    static RankOrder evaluate(std::int64_t begin, std::int64_t end) {
        return {.kind = Kind::evaluate, .begin = begin, .end = end};
    }
    static RankOrder stop(int exit_code) { return {.kind = Kind::stop, .exit_code = exit_code}; }

    bool operator==(const RankOrder&) const = default;
};

class RankTeam {
  public:
    // `collective` joins all ranks of the island; null for an island of one. Both outlive the team.
    RankTeam(IslandCollective* collective, const Clock& clock, Milliseconds timeout);

    bool is_gateway() const { return collective_ == nullptr || collective_->rank() == Rank(0); }

    void announce(const RankOrder& order);  // gateway
    void keep_alive();                      // gateway: sends `wait` if nothing was sent for a second
    RankOrder receive();                    // the others: the next order that is not `wait`

  private:
    void broadcast(std::span<double> words);

    IslandCollective* collective_;
    const Clock& clock_;
    Milliseconds timeout_;
    TimePoint last_sent_;
};

}  // namespace atl
