#include "simulator/geo_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codec/codec.h"
#include "core/error.h"
#include "outer/codec_choices.h"
#include "outer/outer.h"
#include "rounds/fragment_schedule.h"

namespace atl {
namespace {

// What a site sends for one exchange of the whole model, and in how many legs.
struct Traffic {
    double bytes = 0;
    std::int32_t legs = 1;
};

Traffic traffic_of(const GeoRun& run) {
    const auto sites = run.sites();
    if (sites == 1) return {0, 0};
    const bool direct = sites == 2 || is_gathered(codec_from_name(run.codec));
    return {round_bytes(run.codec, run.parameters, sites), direct ? 1 : 2};
}

OuterLoop loop_of(const GeoRun& run) {
    const auto& schedule = run.schedule;
    if (schedule.fragments > std::min(run.layers, schedule.inner_steps))
        throw UserError(fmt::format("[simulate] {} fragments are more than the {} layers or the {} inner steps",
                                    schedule.fragments, run.layers, schedule.inner_steps));
    if (schedule.overlap_steps > fitting_overlap(schedule.overlap_steps, schedule.inner_steps, schedule.fragments))
        throw UserError(fmt::format("[simulate] {} overlap steps are too many: {} inner steps / {} fragments",
                                    schedule.overlap_steps, schedule.inner_steps, schedule.fragments));
    const auto traffic = traffic_of(run);
    return {.schedule = schedule,
            .layers = run.layers,
            .step_seconds = run.step_seconds,
            .exchange_seconds = 8 * traffic.bytes / run.link_bits_per_second,
            .latency_seconds = traffic.legs > 0 ? (traffic.legs / 2.0 + 1) * run.round_trip_seconds : 0};
}

}  // namespace

OuterLoopRun simulate(const GeoRun& run) {
    return simulate(loop_of(run));
}

GeoPrediction predict(const GeoRun& run) {
    constexpr double kDay = 86'400;
    const auto loop = loop_of(run);
    const auto result = simulate(loop);
    GeoPrediction prediction{.payload_bytes_per_round = traffic_of(run).bytes,
                             .exchange_seconds = loop.exchange_seconds,
                             .latency_seconds = loop.latency_seconds};
    for (const auto utilization : result.compute_utilization)
        prediction.compute_utilization += utilization / run.sites();
    prediction.tokens_per_second =
        run.sites() * run.tokens_per_step * run.schedule.inner_steps / result.round_seconds;
    prediction.days = run.token_budget / prediction.tokens_per_second / kDay;
    return prediction;
}

std::vector<OuterChoice> outer_choices(const GeoRun& run) {
    const auto inner_steps = run.schedule.inner_steps;
    // Streaming as published: three layers a fragment; one step of overlap at least.
    const auto fragments = std::max(1, std::min(run.layers / 3, inner_steps / 2));
    const auto overlap_steps = static_cast<int>(fitting_overlap(5, inner_steps, fragments));
    std::vector<OuterChoice> choices{{"as asked", run.schedule, run.codec},
                                     {"data parallel", {1, 1, 0}, "identity"},
                                     {"data parallel", {1, 1, 0}, "bf16"}};
    for (const auto* codec : {"identity", "int8", "int4", "top_k"})
        choices.push_back({"diloco", {inner_steps, 1, 0}, codec});
    for (const auto* codec : {"identity", "int8", "int4", "top_k"})
        choices.push_back({"streaming", {inner_steps, fragments, overlap_steps}, codec});
    return choices;
}

std::string print_geo_table(const GeoRun& run, const std::vector<OuterChoice>& choices) {
    auto text = fmt::format("{:<15}{:<10}{:>5}{:>11}{:>9}{:>14}{:>13}{:>15}{:>11}\n", "method", "codec", "H",
                            "fragments", "overlap", "MB per round", "exchange s", "utilization %", "days");
    for (const auto& choice : choices) {
        auto chosen = run;
        chosen.schedule = choice.schedule;
        chosen.codec = choice.codec;
        const auto prediction = predict(chosen);
        text += fmt::format("{:<15}{:<10}{:>5}{:>11}{:>9}{:>14.1f}{:>13.2f}{:>15.1f}{:>11.4g}\n", choice.name,
                            choice.codec, choice.schedule.inner_steps, choice.schedule.fragments,
                            choice.schedule.overlap_steps, prediction.payload_bytes_per_round / 1e6,
                            prediction.exchange_seconds, 100 * prediction.compute_utilization, prediction.days);
    }
    return text;
}

}  // namespace atl
