// Simulated utilization of sites far apart: held against published tables, and printed as it was.
#include <gtest/gtest.h>

#include "simulator/geo_run.h"
#include "simulator/published_utilization.h"
#include "support/golden_text.h"

namespace atl {
namespace {

TEST(GoldenSimulatedSites, published_utilization_is_met_within_the_stated_bounds) {
    const auto rates = required_rates();
    const auto hours = run_hours();
    const auto measured = measured_utilization();
    const auto errors = errors_of(rates, hours, measured);
    EXPECT_EQ(rates.size(), 22u);
    EXPECT_GE(errors.least_ratio, kLeastRateRatio);
    EXPECT_LE(errors.greatest_ratio, kGreatestRateRatio);
    EXPECT_LE(errors.greatest_hours_error, kGreatestHoursError);
    EXPECT_LE(errors.greatest_points_error, kGreatestPointsError);
    test::expect_golden_text("simulated/published_utilization.txt",
                             print(rates) + print(hours) + print(measured) + print(errors));
}

TEST(GoldenSimulatedSites, table_of_methods_and_codecs) {
    std::string text;
    for (const std::size_t sites : {2, 8}) {
        const GeoRun run{.parameters = 1e9,
                         .layers = 24,
                         .step_seconds = std::vector<double>(sites, 1.0),
                         .tokens_per_step = 1e6,
                         .link_bits_per_second = 1e9,
                         .round_trip_seconds = 0.1,
                         .schedule = {.inner_steps = 100},
                         .codec = "int8",
                         .token_budget = 20e9};
        text += print_geo_table(run, outer_choices(run));
    }
    test::expect_golden_text("simulated/geo_table.txt", text);
}

}  // namespace
}  // namespace atl
