#include "outer/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace atl {
namespace {

constexpr std::int64_t kFewestSteps = 10;  // below, more frequent exchanges gain nothing
constexpr double kFewestRounds = 10;
constexpr double kRoundsOfTheLaw = 100;
constexpr double kWorthwhile = 0.005;

// Slope of y over ln x by least squares.
double slope(std::span<const std::pair<double, double>> points) {
    ATOLL_CHECK(points.size() >= 2, "a line through {} points", points.size());
    double mean_x = 0;
    double mean_y = 0;
    for (const auto& [x, y] : points) {
        mean_x += std::log(x) / static_cast<double>(points.size());
        mean_y += y / static_cast<double>(points.size());
    }
    double covariance = 0;
    double variance = 0;
    for (const auto& [x, y] : points) {
        covariance += (std::log(x) - mean_x) * (y - mean_y);
        variance += std::pow(std::log(x) - mean_x, 2);
    }
    ATOLL_CHECK(variance > 0, "a line through points of one abscissa");
    return covariance / variance;
}

double loss_penalty(const TunerInput& input, std::int64_t inner_steps) {
    const LossModel& loss = input.loss;
    const auto steps = static_cast<double>(inner_steps);
    double penalty = std::log(steps / static_cast<double>(input.inner_steps.front()));
    if (loss.run_steps > 0) penalty += 2 * std::max(0.0, std::log(steps * kRoundsOfTheLaw / loss.run_steps));
    return loss.per_log_inner_steps * penalty;
}

// The inner steps that an exchange can hide behind in rounds of this length.
std::int64_t hiding_steps(const StreamChoice& stream, std::int64_t inner_steps) {
    if (stream.a_round_late) return inner_steps;
    return std::clamp<std::int64_t>(inner_steps / stream.fragments - 1, 0, stream.overlap_steps);
}

double stall(const TunerInput& input, std::int64_t inner_steps, const CodecChoice& codec,
             const StreamChoice& stream) {
    const auto fragments = static_cast<double>(stream.fragments);
    const double hidden = static_cast<double>(hiding_steps(stream, inner_steps)) * input.step_seconds;
    const double carrying = input.bits_per_second > 0 ? 8 * codec.bytes / input.bits_per_second : 0;
    const double each = input.round_trip_seconds + carrying / fragments;
    const double waiting = input.own_seconds + fragments * std::max(0.0, each - hidden);
    return std::max(waiting, carrying - static_cast<double>(inner_steps) * input.step_seconds);
}

std::string describe(const StreamChoice& stream) {
    if (stream == StreamChoice{}) return "";
    if (stream.a_round_late) return ", hidden behind the whole next round";
    const std::string parts =
        stream.fragments == 1 ? "in one piece" : fmt::format("in {} fragments", stream.fragments);
    if (stream.overlap_steps == 0) return " " + parts;
    return fmt::format(" {}, each hidden behind {} step{}", parts, stream.overlap_steps,
                       stream.overlap_steps == 1 ? "" : "s");
}

std::string explain(const TunerInput& input, const TunerDecision& decision) {
    const TunerPoint& best = decision.best;
    const double share = best.stall_seconds / input.step_seconds;
    std::string text = fmt::format(
        "H = {} with {}{}: a step takes {:.4g} s and a round stands still for {:.4g} s, as long as {:.3g} "
        "steps, so {:.1f} % of the time is compute.",
        best.inner_steps, best.codec.name, describe(best.stream), input.step_seconds, best.stall_seconds,
        share, 100 * best.compute_utilization);
    const auto at = std::ranges::find(decision.curve, best.inner_steps, &TunerPoint::inner_steps);
    const auto compare = [&](const TunerPoint& other, const char* direction, const char* why) {
        text += fmt::format(
            " {} (H = {}) would compute {:.1f} % of the time and take {:.1f} % longer to the same loss, {}.",
            direction, other.inner_steps, 100 * other.compute_utilization,
            100 * (std::exp(other.log_time - best.log_time) - 1), why);
    };
    if (at != decision.curve.begin()) compare(*std::prev(at), "More often", "for all its waiting");
    if (std::next(at) != decision.curve.end())
        compare(*std::next(at), "Less often", "because rarer exchanges cost loss");
    text += fmt::format(
        " The time to a given loss is predicted as {:.2f} times that with a link that costs "
        "nothing (a = {:.3g} nats per factor e in H, s = {:.3g} nats per factor e in tokens).",
        std::exp(best.log_time), input.loss.per_log_inner_steps, input.loss.per_log_tokens);
    return text;
}

}  // namespace

LossModel loss_model(std::int64_t sites, double run_steps) {
    const double doublings = std::log2(static_cast<double>(std::max<std::int64_t>(sites, 2))) - 1;
    return {.per_log_inner_steps = 0.017 + 0.008 * doublings, .run_steps = run_steps};
}

LossModel fit_loss_model(std::span<const std::pair<double, double>> loss_by_inner_steps,
                         std::span<const std::pair<double, double>> loss_by_tokens) {
    return {.per_log_inner_steps = slope(loss_by_inner_steps), .per_log_tokens = -slope(loss_by_tokens)};
}

bool fits(const StreamChoice& stream, std::int64_t inner_steps) {
    return stream.fragments <= inner_steps && stream.overlap_steps < std::max<std::int64_t>(inner_steps / stream.fragments, 1);
}

TunerPoint predict(const TunerInput& input, std::int64_t inner_steps, const CodecChoice& codec,
                   const StreamChoice& stream) {
    TunerPoint point{.inner_steps = inner_steps, .codec = codec, .stream = stream};
    point.stall_seconds = stall(input, inner_steps, codec, stream);
    const double compute = static_cast<double>(inner_steps) * input.step_seconds;
    point.compute_utilization = compute / (compute + point.stall_seconds);
    point.log_time = -std::log(point.compute_utilization) +
                     (loss_penalty(input, inner_steps) + codec.loss_penalty) / input.loss.per_log_tokens;
    return point;
}

TunerDecision tune(const TunerInput& input) {
    ATOLL_CHECK(input.step_seconds > 0, "steps of {} s", input.step_seconds);
    ATOLL_CHECK(!input.inner_steps.empty() && !input.codecs.empty(), "{} candidates, {} codecs",
                input.inner_steps.size(), input.codecs.size());
    ATOLL_CHECK(std::ranges::is_sorted(input.inner_steps), "candidates that don't ascend");
    const auto shorter = [](const TunerPoint& one, const TunerPoint& other) {
        return one.log_time < other.log_time;
    };
    TunerDecision decision;
    for (const std::int64_t inner_steps : input.inner_steps) {
        std::vector<TunerPoint> points;
        for (const CodecChoice& codec : input.codecs)
            for (const StreamChoice& stream : input.streams)
                if (fits(stream, inner_steps))
                    points.push_back(predict(input, inner_steps, codec, stream));
        if (!points.empty()) decision.curve.push_back(*std::ranges::min_element(points, shorter));
    }
    ATOLL_CHECK(!decision.curve.empty(), "no stream fits into {} steps", input.inner_steps.back());
    decision.best = *std::ranges::min_element(decision.curve, shorter);
    decision.reason = explain(input, decision);
    return decision;
}

std::vector<std::int64_t> inner_step_candidates(std::int64_t run_steps) {
    std::vector<std::int64_t> candidates{kFewestSteps};
    const double most = static_cast<double>(run_steps) / kFewestRounds;
    for (std::int64_t base = kFewestSteps; candidates.back() < (1 << 20); base *= 2) {
        for (const std::int64_t next : {base * 7 / 5, base * 2}) {
            if (static_cast<double>(next) > most) return candidates;
            candidates.push_back(next);
        }
    }
    return candidates;
}

bool is_worth_changing(const TunerDecision& decision, std::int64_t current) {
    const auto now = std::ranges::find(decision.curve, current, &TunerPoint::inner_steps);
    return now == decision.curve.end() || now->log_time - decision.best.log_time > kWorthwhile;
}

double closed_form_inner_steps(double stall_seconds, double step_seconds, double kappa) {
    return kappa < 1 ? stall_seconds / step_seconds * (1 - kappa) / kappa : 0;
}

}  // namespace atl
