// How well an exchange fills its links, in virtual time: no processor, no TCP, only the order in which sites encode, send,
// reduce and send back.
#include <gtest/gtest.h>

#include <algorithm>

#include "rounds/owner_shares.h"
#include "support/exchange_world.h"

namespace atl {
namespace {

using test::World;
using test::WorldOptions;

constexpr double kUplinkBytesPerSecond = 1e6;

// As many chunks as 6 M elements have, and the time that 50 Mbit/s take for those in eight bits.
WorldOptions far_apart(int sites) {
    WorldOptions options;
    options.sites = sites;
    options.codec = "fp16";
    options.elements = 460'000;
    options.chunk_elements = 5'000;
    options.rounds = 2;
    options.link.least_delay = options.link.most_delay = std::chrono::milliseconds(25);
    options.uplink_bytes_per_second.assign(static_cast<std::size_t>(sites), kUplinkBytesPerSecond);
    return options;
}

double fp16_bytes(const WorldOptions& options) {
    return 2 * static_cast<double>(options.elements);
}

double seconds_of(const WorldOptions& options) {
    World world(options);
    EXPECT_TRUE(world.run_to_end());
    return seconds(world.duration(0, Round(1)));
}

TEST(ExchangeSchedule, owners_begin_to_send_means_while_contributions_still_come) {
    for (const int sites : {3, 4, 8}) {
        const WorldOptions options = far_apart(sites);
        // Contributions to the other owners, and the own part's mean to all others.
        const double bytes = 2.0 * (sites - 1) / sites * fp16_bytes(options);
        EXPECT_LT(seconds_of(options), 1.1 * bytes / kUplinkBytesPerSecond) << sites << " sites";
    }
}

double fp16_seconds_of_last_uplink(const WorldOptions& options, const std::vector<double>& shares) {
    double slowest = 0;
    for (std::size_t site = 0; site < shares.size(); ++site) {
        const double fragments = 1 + static_cast<double>(shares.size() - 2) * shares[site];
        slowest = std::max(slowest, fragments * fp16_bytes(options) / options.uplink_bytes_per_second[site]);
    }
    return slowest;
}

// Nothing is known of the links in the first round; from the second on they have been measured.
TEST(ExchangeSchedule, owners_with_slow_uplinks_reduce_less) {
    for (const std::vector<double>& rates : {std::vector{1e6, 1e6, 1e6, 0.5e6}, std::vector{1e6, 1e6, 0.25e6},
                                             std::vector{2e6, 1e6, 1e6, 1e6, 0.7e6}}) {
        WorldOptions options = far_apart(static_cast<int>(rates.size()));
        options.uplink_bytes_per_second = rates;
        options.rounds = 4;
        World world(options);
        ASSERT_TRUE(world.run_to_end());
        const double equal = seconds(world.duration(0, Round(0)));
        const double measured = seconds(world.duration(0, Round(3)));
        const double best = fp16_seconds_of_last_uplink(options, owner_shares(rates, rates.size()));
        EXPECT_LT(measured, 1.25 * best) << rates.size() << " sites";
        const std::vector<double> alike(rates.size(), 1.0 / static_cast<double>(rates.size()));
        EXPECT_GT(equal, fp16_seconds_of_last_uplink(options, alike)) << rates.size() << " sites";
        EXPECT_LT(measured, 0.9 * equal) << rates.size() << " sites";
    }
}

TEST(ExchangeSchedule, two_sites_need_one_leg) {
    const WorldOptions options = far_apart(2);
    EXPECT_LT(seconds_of(options), 1.06 * fp16_bytes(options) / kUplinkBytesPerSecond);
}

}  // namespace
}  // namespace atl
