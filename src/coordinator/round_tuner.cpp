#include "coordinator/round_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace atl {
namespace {

constexpr std::size_t kWindow = 3;  // rounds

// The middle value; of an even number the smaller of the two in the middle.
double middle(const std::vector<MeasuredRounds>& rounds, double MeasuredRounds::*value) {
    std::vector<double> values;
    for (const MeasuredRounds& round : rounds) values.push_back(round.*value);
    const auto position = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), position, values.end());
    return *position;
}

MeasuredRounds measure(const std::vector<const RoundCost*>& costs) {
    MeasuredRounds round{.sites = static_cast<std::int64_t>(costs.size()),
                         .stall_seconds = costs.front()->stall_seconds(),
                         .exchange_seconds = costs.front()->exchange_seconds,
                         .compute_utilization = 1};
    for (const RoundCost* cost : costs) {
        const auto most =
            static_cast<double>(std::max(cost->payload_bytes_sent(), cost->payload_bytes_received()));
        round.step_seconds =
            std::max(round.step_seconds, cost->step_seconds / static_cast<double>(cost->inner_steps));
        round.stall_seconds = std::min(round.stall_seconds, cost->stall_seconds());
        round.exchange_seconds = std::min(round.exchange_seconds, cost->exchange_seconds);
        for (const PeerTraffic& peer : cost->peers)
            round.round_trip_seconds = std::max(round.round_trip_seconds, peer.round_trip_seconds);
        round.payload_bytes = std::max(round.payload_bytes, most);
        round.raw_bytes = std::max(round.raw_bytes, static_cast<double>(cost->raw_bytes_sent));
        round.compute_utilization = std::min(round.compute_utilization, cost->compute_utilization());
    }
    return round;
}

}  // namespace

std::optional<MeasuredRounds> measured_rounds(const RoundCosts& costs,
                                              std::optional<std::int64_t> inner_steps) {
    std::map<Round, std::vector<const RoundCost*>> by_round;
    for (const auto& [site, history] : costs)
        for (const RoundCost& cost : history)
            if (!inner_steps || cost.inner_steps == *inner_steps) by_round[cost.round].push_back(&cost);
    // The newest round may still lack a site; of those before it, as many sites as told of the most recent one.
    std::size_t sites = 0;
    std::vector<MeasuredRounds> rounds;
    for (auto entry = by_round.rbegin(); entry != by_round.rend() && rounds.size() < kWindow; ++entry) {
        const auto before = std::next(entry);
        const bool unfinished =
            rounds.empty() && before != by_round.rend() && before->second.size() > entry->second.size();
        if (unfinished) continue;
        if (rounds.empty()) sites = entry->second.size();
        if (entry->second.size() == sites) rounds.push_back(measure(entry->second));
    }
    if (rounds.empty()) return {};
    MeasuredRounds result{.sites = rounds.front().sites};
    for (double MeasuredRounds::*value :
         {&MeasuredRounds::step_seconds, &MeasuredRounds::stall_seconds, &MeasuredRounds::exchange_seconds,
          &MeasuredRounds::round_trip_seconds, &MeasuredRounds::payload_bytes, &MeasuredRounds::raw_bytes,
          &MeasuredRounds::compute_utilization})
        result.*value = middle(rounds, value);
    return result;
}

TunerInput tuner_input(const MeasuredRounds& measured, const RunNumbers& numbers, std::int64_t fragments) {
    TunerInput input;
    input.step_seconds = measured.step_seconds;
    // What is not distance is carrying.
    input.round_trip_seconds = std::min(measured.round_trip_seconds, measured.exchange_seconds / 2);
    if (measured.exchange_seconds > 0)
        input.bits_per_second =
            8 * measured.payload_bytes / (measured.exchange_seconds - input.round_trip_seconds);
    input.inner_steps = inner_step_candidates(numbers.total_steps);
    input.codecs = {{numbers.method.codec, measured.payload_bytes, 0}};
    input.streams = {{fragments, numbers.method.overlap_steps, numbers.a_round_late}};
    input.loss = loss_model(measured.sites, static_cast<double>(numbers.total_steps));
    // What the exchange itself does not explain happens in every round, whatever its length.
    const bool waits = numbers.method.overlap_steps == 0 && !numbers.a_round_late;
    const double carried = waits ? measured.exchange_seconds : 0;
    input.own_seconds = std::max(0.0, measured.stall_seconds - carried);
    return input;
}

std::optional<TunedSteps> tune_inner_steps(const RunNumbers& numbers, std::int64_t fragments,
                                           const RoundCosts& costs) {
    const auto measured = measured_rounds(costs);
    if (!measured || !numbers.automatic_inner_steps) return {};
    const TunerInput input = tuner_input(*measured, numbers, fragments);
    // The run is too short for the fragments and overlap that it asks for: there is nothing to choose.
    if (!fits(input.streams.front(), input.inner_steps.back())) return {};
    const TunerDecision decision = tune(input);
    if (!is_worth_changing(decision, numbers.inner_steps)) return {};
    return TunedSteps{decision.best.inner_steps, decision.reason};
}

}  // namespace atl
