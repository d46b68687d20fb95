// H while a run goes on: from what the last rounds cost the sites to the tuner's input and its choice.
//
// A step lasts as long as the slowest site's; a round stands still as long as for the site that waited least, because
// the others waited for it too. Of the last three rounds that every site has told of, the middle one counts (of two the
// cheaper one), so that a single slow round moves nothing and a link that has changed is followed after two.
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>

#include "outer/tuner.h"
#include "rounds/coordinator_state.h"

namespace atl {

struct MeasuredRounds {
    std::int64_t sites = 0;
    double step_seconds = 0;        // one step
    double stall_seconds = 0;       // of a round
    double exchange_seconds = 0;    // part of it that the exchange takes
    double round_trip_seconds = 0;  // of the pair farthest apart; part of the exchange
    double payload_bytes = 0;       // in the busier direction of the busiest site
    double raw_bytes = 0;           // that the busiest site sent, in fp32
    double compute_utilization = 0;
};

// What rounds of `inner_steps` cost, or of any number; nothing before a whole one has been told of.
std::optional<MeasuredRounds> measured_rounds(const RoundCosts& costs,
                                              std::optional<std::int64_t> inner_steps = {});

// With the codec and stream in use as the only choices.
TunerInput tuner_input(const MeasuredRounds& measured, const RunNumbers& numbers, std::int64_t fragments);

struct TunedSteps {
    std::int64_t inner_steps = 0;
    std::string reason;
};
// What `outer.inner_steps = "auto"` changes now; nothing: H stays.
std::optional<TunedSteps> tune_inner_steps(const RunNumbers& numbers, std::int64_t fragments,
                                           const RoundCosts& costs);

}  // namespace atl
