// A run over several sites, predicted: what a round's exchange takes, how much of the time the sites compute, and how
// long a budget of tokens lasts.
//
// Exchange of a fragment, as src/exchange does it: two sites, or any number with a codec so small that everybody gets
// everybody's packets, send contributions to one another; from three on each site reduces the chunks it owns and sends
// their mean back. A site sends over its link one fragment at a time. To each exchange come round trips: half a one per
// leg, and one for the commit. Compression and the outer step are not counted.
//
// Units in the names. Pure functions. Errors: UserError for names and schedules that can't be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/outer_loop.h"

namespace atl {

struct GeoRun {
    double parameters = 0;
    std::int32_t layers = 1;
    std::vector<double> step_seconds;  // [site]: compute of an inner step
    double tokens_per_step = 0;        // of one site
    double link_bits_per_second = 1e9;  // of each site, each way
    double round_trip_seconds = 0;
    FragmentSchedule schedule;
    std::string codec = "int8";
    double token_budget = 0;

    std::int32_t sites() const { return static_cast<std::int32_t>(step_seconds.size()); }
};

struct GeoPrediction {
    double payload_bytes_per_round = 0;   // that one site sends
    double exchange_seconds = 0;          // of the whole model, without latency
    double latency_seconds = 0;           // of one fragment
    double compute_utilization = 0;       // mean of the sites
    double tokens_per_second = 0;         // all sites
    double days = 0;                      // to the budget
};

GeoPrediction predict(const GeoRun& run);
// What the prediction ran on the virtual executor.
OuterLoopRun simulate(const GeoRun& run);

// One way of keeping the sites together.
struct OuterChoice {
    std::string name;
    FragmentSchedule schedule;
    std::string codec;
};
// Synchronous data parallelism, DiLoCo and streaming DiLoCo with some codecs, around the run's H; `run` itself first.
std::vector<OuterChoice> outer_choices(const GeoRun& run);

// A table for people, one line a choice, each with the run's sites.
std::string print_geo_table(const GeoRun& run, const std::vector<OuterChoice>& choices);

}  // namespace atl
