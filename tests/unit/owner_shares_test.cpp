// Owners' shares by the rates of their uplinks: the linear program of a reduction by owners, against plain search.
#include "rounds/owner_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/random.h"
#include "rounds/attempt_plan.h"

namespace atl {
namespace {

// The time at which the last uplink is done, in fragments.
double slowest_uplink(std::span<const double> rates, std::span<const double> shares, std::size_t members) {
    double slowest = 0;
    for (std::size_t i = 0; i < rates.size(); ++i)
        slowest = std::max(slowest, (1 + static_cast<double>(members - 2) * shares[i]) / rates[i]);
    return slowest;
}

void expect_shares(const std::vector<double>& rates, const std::vector<double>& expected) {
    const std::vector<double> shares = owner_shares(rates, rates.size());
    ASSERT_EQ(shares.size(), expected.size());
    for (std::size_t i = 0; i < shares.size(); ++i)
        EXPECT_NEAR(shares[i], expected[i], 1e-12) << "owner " << i;
}

TEST(OwnerShares, are_equal_where_rates_are_equal_or_not_known_or_two_sites_exchange_directly) {
    for (std::size_t sites = 1; sites < 10; ++sites) {
        expect_shares(std::vector(sites, 3.0), std::vector(sites, 1.0 / static_cast<double>(sites)));
        std::vector<double> rates(sites, 3.0);
        rates.back() = 0;
        expect_shares(rates, std::vector(sites, 1.0 / static_cast<double>(sites)));
    }
    expect_shares({5, 1}, {0.5, 0.5});
}

TEST(OwnerShares, are_those_of_the_worked_examples) {
    expect_shares({2, 2, 1}, {0.5, 0.5, 0});
    EXPECT_NEAR(slowest_uplink(std::array{2.0, 2.0, 1.0}, owner_shares(std::array{2.0, 2.0, 1.0}, 3), 3), 1,
                1e-12);
    expect_shares({3, 2, 2}, {5.0 / 7, 1.0 / 7, 1.0 / 7});
    EXPECT_NEAR(slowest_uplink(std::array{3.0, 2.0, 2.0}, owner_shares(std::array{3.0, 2.0, 2.0}, 3), 3),
                4.0 / 7, 1e-12);
}

// All splits of three owners in steps of a hundredth.
double best_of_all_splits(std::span<const double> rates, std::size_t members) {
    constexpr int kSteps = 100;
    double best = std::numeric_limits<double>::infinity();
    for (int first = 0; first <= kSteps; ++first) {
        for (int second = 0; first + second <= kSteps; ++second) {
            const std::array shares{first / 100.0, second / 100.0, (kSteps - first - second) / 100.0};
            best = std::min(best, slowest_uplink(rates, shares, members));
        }
    }
    return best;
}

TEST(OwnerShares, no_other_split_ends_earlier) {
    constexpr std::uint64_t kSeed = 5;
    const RandomStream random(kSeed, "owner shares");
    for (std::uint64_t draw = 0; draw < 60; ++draw) {
        std::vector<double> rates;
        for (std::uint64_t i = 0; i < 3; ++i) rates.push_back(0.2 + 4 * random.uniform(3 * draw + i));
        const std::size_t members = 3 + draw % 3;  // some only receive
        const std::vector<double> shares = owner_shares(rates, members);
        EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-12);
        EXPECT_GE(*std::ranges::min_element(shares), 0);
        EXPECT_LE(slowest_uplink(rates, shares, members), best_of_all_splits(rates, members) + 1e-9)
            << "draw " << draw << " of seed " << kSeed;
    }
}

RoundPlan plan_of(const std::vector<double>& rates) {
    RoundPlan plan;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        plan.sites.push_back({.site = SiteId(static_cast<int>(i)),
                              .inner_steps = 1,
                              .weight = 1,
                              .blocks = {},
                              .send_bytes_per_second = rates[i]});
    }
    plan.fragments = {{FragmentId(0), 7000, 10, Step(1)}};
    return plan;
}

TEST(OwnerShares, of_an_attempt_are_whole_chunks_and_shared_anew_among_those_who_are_left) {
    const RoundPlan plan = plan_of({3, 2, 2, 4});
    const AttemptPlan first = first_attempt(plan, plan.fragments[0], false);
    ASSERT_EQ(first.owners.size(), 4u);
    EXPECT_GT(first.owners[3].chunks, first.owners[0].chunks);
    EXPECT_NEAR(static_cast<double>(first.owners[1].chunks), static_cast<double>(first.owners[2].chunks), 1);
    const std::vector<SiteId> left{SiteId(0), SiteId(1), SiteId(2)};
    const AttemptPlan next = next_attempt(first, plan, {{SiteId(0), 1}, {SiteId(1), 1}, {SiteId(2), 1}}, left,
                                          false, "site 3 is lost");
    EXPECT_EQ(next.owners,
              (std::vector<OwnerShare>{{SiteId(0), 0, 500}, {SiteId(1), 500, 100}, {SiteId(2), 600, 100}}));
}

TEST(OwnerShares, leave_out_an_owner_whose_contribution_alone_takes_as_long_as_the_rest) {
    const RoundPlan plan = plan_of({2, 2, 1});
    const AttemptPlan attempt = first_attempt(plan, plan.fragments[0], false);
    EXPECT_EQ(attempt.owners, (std::vector<OwnerShare>{{SiteId(0), 0, 350}, {SiteId(1), 350, 350}}));
}

}  // namespace
}  // namespace atl
