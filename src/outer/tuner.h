// How often sites should exchange, and how: the choice of inner steps H, codec, fragments and overlap that reaches a
// given loss soonest on the links there are.
//
// A round of H steps of t seconds stands still for a while, so wall time grows by ln(1 + stall / (H·t)); rarer and
// coarser exchanges cost loss, which costs tokens: ln T = δ / s. What is minimised is the sum, the predicted log of the
// time to equal loss relative to exchanges that are free and as frequent as can be:
//
//   δ(H)  = a · ln(H / H0) + 2a · max(0, ln(100·H / run)) + the codec's      (nats; H0 the smallest candidate)
//   stall = own + P · max(0, (round trip + 8·V/P/B) − τ·t), and at least what the link can't carry meanwhile; τ is at most
//           H/P − 1, and H where the exchange is a round late
//
// Without overlap and with κ = a/s the minimum is at H = x·(1 − κ)/κ, x = stall/t (closed_form_inner_steps).
// Units: seconds, bytes, bits per second, nats. Pure functions; any thread. Errors: CheckError for an empty or
// impossible input, such as streams of which none fits a candidate. Cost: candidates × codecs × streams.
// Sources: the timing model of Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512), whose tables also give a and
// s (fit_loss_model); the law in ln H holds while a run has a hundred rounds or more, below it H costs about three
// times as much.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace atl {

struct LossModel {
    double per_log_inner_steps = 0.017;  // a: nats lost when H grows by a factor e
    double per_log_tokens = 0.1;         // s: nats gained by e times the tokens
    double run_steps = 0;                // inner steps of the whole run; 0: endless

    double kappa() const { return per_log_inner_steps / per_log_tokens; }
};

// a grows with the number of sites: 0.017 for two, 0.025 for four.
LossModel loss_model(std::int64_t sites, double run_steps);

// (H, loss) at equal tokens and (tokens, loss) at equal H: straight lines in the logarithm, by least squares.
LossModel fit_loss_model(std::span<const std::pair<double, double>> loss_by_inner_steps,
                         std::span<const std::pair<double, double>> loss_by_tokens);

struct CodecChoice {
    std::string name;
    double bytes = 0;         // that the busiest direction of the busiest site carries in a round
    double loss_penalty = 0;  // nats
};

// Each fragment's exchange may take τ steps before anybody waits for it.
struct StreamChoice {
    std::int64_t fragments = 1;      // P
    std::int64_t overlap_steps = 0;  // τ, below H / P: a shorter round has what fits
    bool a_round_late = false;       // τ is the whole round, whatever its length
    bool operator==(const StreamChoice&) const = default;
};

struct TunerInput {
    double step_seconds = 0;     // t, of the slowest site
    double own_seconds = 0;      // of a round's stand-still that neither bytes nor distance cause
    double bits_per_second = 0;  // B; 0: bytes cost nothing
    double round_trip_seconds = 0;
    std::vector<std::int64_t> inner_steps;  // candidates, ascending
    std::vector<CodecChoice> codecs;
    std::vector<StreamChoice> streams{{}};
    LossModel loss;
};

struct TunerPoint {
    std::int64_t inner_steps = 0;
    CodecChoice codec;
    StreamChoice stream;
    double stall_seconds = 0;        // of a round
    double compute_utilization = 0;  // H·t / (H·t + stall)
    double log_time = 0;             // see above
};

struct TunerDecision {
    TunerPoint best;
    std::vector<TunerPoint> curve;  // the best for each H, ascending
    std::string reason;             // one paragraph
};

// Whether a round of so many steps gives every fragment its turn and hides the overlap.
bool fits(const StreamChoice& stream, std::int64_t inner_steps);

TunerPoint predict(const TunerInput& input, std::int64_t inner_steps, const CodecChoice& codec,
                   const StreamChoice& stream);
TunerDecision tune(const TunerInput& input);

// 10, 14, 20, 28, …, as long as a run of so many steps still has ten rounds; at least the first.
std::vector<std::int64_t> inner_step_candidates(std::int64_t run_steps);
// Whether it is worth leaving the H in use: not for less than half a percent of the predicted time.
bool is_worth_changing(const TunerDecision& decision, std::int64_t current);
// The minimum without overlap of an endless run, before it is clamped. Infinite κ ≥ 1: 0.
double closed_form_inner_steps(double stall_seconds, double step_seconds, double kappa);

}  // namespace atl
