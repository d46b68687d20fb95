// Whole runs of 1 to 9 sites over a simulated network: whatever the delays, losses and orders, all sites get the
// same bits, the mean is that of the sites that count, and damage never counts as data.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/random.h"
#include "kernels/outer_step.h"
#include "support/exchange_world.h"

namespace atl {
namespace {

using test::World;
using test::WorldOptions;

SimulatedLink rough_link() {
    SimulatedLink link;
    link.least_delay = std::chrono::microseconds(100);
    link.most_delay = std::chrono::milliseconds(30);
    link.loss = 0.02;
    link.duplication = 0.05;
    link.reordering = 0.3;
    link.corruption = 0.01;
    return link;
}

void expect_equal_bits(World& world, int sites, std::int64_t rounds) {
    for (std::int64_t round = 0; round < rounds; ++round) {
        const std::vector<float>* first = nullptr;
        for (int site = 0; site < sites; ++site) {
            if (!world.is_alive(site)) continue;
            ASSERT_TRUE(world.means(site).contains(Round(round))) << "site " << site << " round " << round;
            const auto& mean = world.means(site).at(Round(round));
            if (first == nullptr) first = &mean;
            ASSERT_EQ(std::memcmp(first->data(), mean.data(), mean.size() * sizeof(float)), 0)
                << "site " << site << " round " << round;
        }
    }
}

double relative_error(std::span<const float> values, std::span<const float> reference) {
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        error += std::pow(double(values[i]) - reference[i], 2);
        power += std::pow(double(reference[i]), 2);
    }
    return std::sqrt(error / power);
}

struct Case {
    std::string codec;
    int sites;
};

class ExchangeTest : public testing::TestWithParam<Case> {};

TEST_P(ExchangeTest, all_sites_get_the_same_bits_over_rough_links_for_every_seed) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        WorldOptions options;
        options.seed = seed;
        options.sites = GetParam().sites;
        options.codec = GetParam().codec;
        options.zstd = seed % 2 == 0;
        options.link = rough_link();
        World world(options);
        ASSERT_TRUE(world.run_to_end());
        expect_equal_bits(world, options.sites, options.rounds);
        for (std::int64_t round = 0; round < options.rounds; ++round) {
            const Commit& commit = world.commits(0).at(Round(round));
            ASSERT_EQ(commit.contributors.size(), static_cast<std::size_t>(options.sites));
            const auto& mean = world.means(0).at(Round(round));
            const auto expected = world.expected_direct_mean(commit);
            if (commit.direct) {
                ASSERT_EQ(mean, expected);
            } else {  // the mean leg is encoded once more
                const bool int8 = mean_codec(codec_from_name(options.codec)).id() == CodecId::int8;
                ASSERT_LT(relative_error(mean, expected), int8 ? 0.01 : 0.004);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, ExchangeTest,
    testing::Values(Case{"identity", 1}, Case{"int8", 1}, Case{"identity", 2}, Case{"fp16", 2},
                    Case{"bf16", 2}, Case{"int8", 2}, Case{"identity", 3}, Case{"bf16", 4}, Case{"fp16", 3},
                    Case{"int8", 3}, Case{"int8", 5}, Case{"int4", 2}, Case{"int4", 4}, Case{"e3m0", 3},
                    Case{"sign", 2}, Case{"sign", 4}, Case{"top_k_64", 2}, Case{"top_k_100", 5},
                    Case{"int4", 9}, Case{"sign", 9}),
    [](const auto& info) { return fmt::format("{}_{}_sites", info.param.codec, info.param.sites); });

// Decoded, summed and applied by processors that differ, every codec gives one state.
TEST(Exchange, sites_with_different_processors_end_with_the_same_bits) {
    for (const Codec* each : all_codecs()) {
        SCOPED_TRACE(each->name());
        WorldOptions options;
        options.sites = 3;
        options.codec = each->name();
        options.mixed_processors = true;
        World world(options);
        ASSERT_TRUE(world.run_to_end());
        expect_equal_bits(world, options.sites, options.rounds);
        std::vector<std::vector<float>> parameters;
        for (int site = 0; site < options.sites; ++site) {
            auto& theta = parameters.emplace_back(static_cast<std::size_t>(options.elements), 1.0F);
            std::vector<float> momentum(theta.size());
            for (const auto& [round, mean] : world.means(site))
                kernels::outer_sgd_step({0.6F, 0.9F, true}, mean, theta, momentum,
                                        world.instruction_set(site));
            EXPECT_EQ(theta, parameters.front());
        }
    }
}

TEST(Exchange, what_was_sent_and_what_was_lost_make_up_the_contribution_of_a_committed_round) {
    for (const char* name : {"top_k_64", "sign"}) {
        WorldOptions options;
        options.codec = name;
        options.link = rough_link();
        World world(options);
        ASSERT_TRUE(world.run_to_end());
        for (const auto& [round, commit] : world.commits(0)) {
            Commit alone = commit;
            for (int site = 0; site < options.sites; ++site) {
                alone.contributors = {commit.contributors[static_cast<std::size_t>(site)]};
                const auto sent = world.expected_direct_mean(alone);
                const auto delta = world.delta(site, round);
                const auto& lost = world.losses(site).at(round);
                for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(lost[i], delta[i] - sent[i]);
            }
        }
    }
}

TEST(Exchange, the_mean_is_the_same_whatever_the_network_does) {
    std::vector<std::vector<float>> means;
    for (std::uint64_t order = 0; order < 4; ++order) {
        WorldOptions options;
        options.sites = 3;
        options.rounds = 1;
        options.link = order == 0 ? SimulatedLink{} : rough_link();
        options.link.most_delay += std::chrono::milliseconds(order);  // another schedule each time
        World world(options);
        ASSERT_TRUE(world.run_to_end());
        means.push_back(world.means(0).at(Round(0)));
    }
    for (const auto& mean : means) EXPECT_EQ(mean, means.front());
}

TEST(Exchange, a_site_that_dies_in_a_round_leaves_the_others_with_the_mean_of_those_that_count) {
    for (const int sites : {2, 3, 5}) {
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            SCOPED_TRACE(fmt::format("{} sites, seed {}", sites, seed));
            WorldOptions options;
            options.seed = seed;
            options.sites = sites;
            options.codec = "identity";
            options.link.bytes_per_second = 2e6;  // so that a round takes a while
            World world(options);
            const int victim = static_cast<int>(seed) % sites;
            bool in_round = false;
            world.on_contribute = [&](int site, Round round) {
                in_round |= site == victim && round == Round(1);
            };
            ASSERT_TRUE(world.run_until([&] { return in_round; }));
            const TimePoint begin = world.now();
            (void)world.run_until([&] { return world.now() - begin >= Milliseconds(3) * seed; });
            world.kill(victim);
            ASSERT_TRUE(world.run_to_end());
            expect_equal_bits(world, sites, options.rounds);
            const int survivor = victim == 0 ? 1 : 0;
            for (const Round round : {Round(0), Round(1), Round(2)}) {
                const Commit& commit = world.commits(survivor).at(round);
                EXPECT_EQ(commit.contributes(SiteId(victim)),
                          round == Round(0) || commit.contributors.size() == static_cast<std::size_t>(sites));
                EXPECT_LT(relative_error(world.means(survivor).at(round), world.expected_direct_mean(commit)),
                          1e-6);
            }
            EXPECT_FALSE(world.commits(survivor).at(Round(2)).contributes(SiteId(victim)));
        }
    }
}

TEST(Exchange, a_contribution_with_one_bad_value_is_left_out_whole) {
    for (const int sites : {2, 3}) {
        SCOPED_TRACE(fmt::format("{} sites", sites));
        WorldOptions options;
        options.sites = sites;
        World world(options);
        world.tamper = [&](int site, Round round, std::vector<float>& delta) {
            if (site == 1 && round == Round(1)) delta[7777] = std::numeric_limits<float>::quiet_NaN();
        };
        ASSERT_TRUE(world.run_to_end());
        expect_equal_bits(world, sites, options.rounds);
        const Commit& commit = world.commits(0).at(Round(1));
        EXPECT_FALSE(commit.contributes(SiteId(1)));
        EXPECT_EQ(commit.contributors.size(), static_cast<std::size_t>(sites - 1));
        EXPECT_LT(relative_error(world.means(0).at(Round(1)), world.expected_direct_mean(commit)), 0.02);
        EXPECT_TRUE(world.commits(0).at(Round(2)).contributes(SiteId(1)));
    }
}

// Every other test here has honest sites, of every codec, and none of them is left out.
TEST(Exchange, a_site_that_declares_less_than_it_sends_is_left_out_of_the_mean) {
    for (const int sites : {2, 3, 4}) {
        for (const std::string codec : {"identity", "int8", "int4"}) {
            SCOPED_TRACE(fmt::format("{} sites, {}", sites, codec));
            WorldOptions options;
            options.sites = sites;
            options.codec = codec;
            World world(options);
            // Within the size that the others have: the size test alone would believe it.
            world.tamper = [&](int site, Round round, std::vector<float>& delta) {
                if (site == 1 && round == Round(1))
                    for (float& value : delta) value *= 100;
            };
            world.declare = [&](int site, Round round, ContributionFacts& facts) {
                if (site == 1 && round == Round(1)) facts.tensor_norms.front() /= 100;
            };
            ASSERT_TRUE(world.run_to_end());
            expect_equal_bits(world, sites, options.rounds);
            const Commit& commit = world.commits(0).at(Round(1));
            EXPECT_FALSE(commit.contributes(SiteId(1)));
            EXPECT_EQ(commit.contributors.size(), static_cast<std::size_t>(sites - 1));
            EXPECT_NE(attempt_of(commit).attempt, Attempt(0));
            EXPECT_TRUE(world.commits(0).at(Round(2)).contributes(SiteId(1)));
        }
    }
}

// A peer of ours goes on as if nothing had happened when it can't decode what others sent.
TEST(Exchange, a_round_is_never_committed_with_packets_that_somebody_could_not_decode) {
    for (const int sites : {2, 3}) {
        SCOPED_TRACE(fmt::format("{} sites", sites));
        WorldOptions options;
        options.sites = sites;
        World world(options);
        // Site 1 sends bodies that are whole on the wire, yet no int8 packets.
        world.on_send = [](int site, Frame& frame) {
            if (site != 1 || frame.kind != FrameKind::packet || frame.round != Round(1)) return;
            std::vector<std::byte> noise(frame.body.size(), std::byte{0xFF});
            frame.body = Payload::own(std::move(noise));
        };
        EXPECT_TRUE(world.run_to_end());
        for (int site = 0; site < sites; ++site) {
            for (const auto& [round, commit] : world.commits(site)) {
                EXPECT_EQ(commit.contributes(SiteId(1)), round != Round(1)) << fmt::format("round {}", round);
                EXPECT_LT(relative_error(world.means(site).at(round), world.expected_direct_mean(commit)),
                          0.02);
            }
        }
        EXPECT_TRUE(world.commits(0).contains(Round(1))) << "the honest sites go on";
    }
}

TEST(Exchange, payload_bytes_are_the_formula_exactly) {
    for (const std::string codec_name : {"identity", "fp16", "int8", "int4", "e3m0", "sign", "top_k_64"}) {
        WorldOptions options;
        options.codec = codec_name;
        World world(options);
        const Codec& agreed = codec_from_name(codec_name);
        std::int64_t formula = 0;
        for (std::int64_t begin = 0; begin < options.elements; begin += options.chunk_elements) {
            formula +=
                packet_payload_bytes(agreed, std::min(options.chunk_elements, options.elements - begin));
        }
        ASSERT_TRUE(world.run_to_end());
        for (int site = 0; site < 2; ++site) {
            const auto counters = world.transport(site).counters();
            ASSERT_EQ(counters.size(), 1u);
            EXPECT_EQ(counters.front().payload_bytes_sent, options.rounds * formula) << codec_name;
            EXPECT_EQ(counters.front().payload_bytes_received, options.rounds * formula) << codec_name;
            const RoundTraffic& traffic = world.driver(site).last_traffic();
            EXPECT_EQ(traffic.peers.front().payload_bytes_sent, formula);
            ASSERT_EQ(traffic.fragments.size(), 1u);
            const FragmentTraffic& fragment = traffic.fragments.front();
            EXPECT_EQ(fragment.payload_bytes_sent, formula);
            EXPECT_EQ(fragment.payload_bytes_received, formula);
            EXPECT_EQ(fragment.raw_bytes_sent, 4 * options.elements);
            EXPECT_EQ(fragment.raw_bytes_received, 4 * options.elements);
            EXPECT_GT(fragment.seconds, 0);
            EXPECT_EQ(fragment.seconds, traffic.seconds);
        }
    }
}

// Packets are under way for longer than a site waits before it asks for them.
TEST(Exchange, what_is_on_its_way_is_not_sent_again_when_it_is_asked_for) {
    for (const int sites : {2, 3}) {
        WorldOptions options;
        options.sites = sites;
        options.link.least_delay = options.link.most_delay = std::chrono::milliseconds(700);
        World world(options);
        std::int64_t requests = 0;
        world.on_send = [&](int, Frame& frame) { requests += frame.kind == FrameKind::want ? 1 : 0; };
        ASSERT_TRUE(world.run_to_end());
        EXPECT_GT(requests, 0) << sites << " sites";
        std::int64_t formula = 0;
        for (std::int64_t begin = 0; begin < options.elements; begin += options.chunk_elements) {
            formula += packet_payload_bytes(codec_from_name(options.codec),
                                            std::min(options.chunk_elements, options.elements - begin));
        }
        std::int64_t sent = 0;
        for (int site = 0; site < sites; ++site) {
            for (const PeerCounters& peer : world.transport(site).counters()) sent += peer.payload_bytes_sent;
        }
        // Directly each contribution once; by owners each but for the own part, and each mean to all others. The keys
        // that are asked for come on top.
        const std::int64_t legs = sites == 2 ? 2 : 2 * (sites - 1);
        EXPECT_LT(sent, options.rounds * legs * formula * 1.05) << sites << " sites";
    }
}

// With the worker's Δ: two copies in fp32 and four encoded ones of a fragment, and a chunk that is in hand. With several
// fragments what each other's last mean was made of is kept on top, for those who lag: one encoded copy of the model, or
// both sites' where two exchange directly.
TEST(Exchange, memory_is_bounded_and_the_same_after_300_rounds) {
    for (const int sites : {2, 3, 4}) {
        for (const std::int64_t fragments : {1, 2, 4}) {
            WorldOptions options;
            options.sites = sites;
            options.elements = 1'200;
            options.chunk_elements = 100;
            options.fragments = fragments;
            options.rounds = 300;
            World world(options);
            std::int64_t encoded = 0;
            std::int64_t encoded_late = 0;
            std::int64_t floats = 0;
            const auto look = [&] {
                const SiteDriver& driver = world.driver(0);
                encoded = std::max(encoded, driver.stored_bytes());
                floats = std::max(floats, driver.mean_bytes());
                if (world.means(0).size() > 200) encoded_late = std::max(encoded_late, driver.stored_bytes());
                return world.all_stopped();
            };
            ASSERT_TRUE(world.run_until(look, Milliseconds(600'000)));
            ASSERT_EQ(world.means(0).size(), 300u);
            const std::int64_t of_fragment = options.elements / fragments;
            const std::int64_t chunks = of_fragment / options.chunk_elements;
            const std::int64_t packet = codec_from_name(options.codec).body_bytes(options.chunk_elements) +
                                        static_cast<std::int64_t>(kPacketHeaderBytes);
            const std::int64_t copies = 4 + (fragments - 1) * (sites == 2 ? 2 : 1);
            EXPECT_LE(encoded, (copies * chunks + 1) * packet) << sites << " sites, " << fragments << " fragments";
            EXPECT_LE(encoded_late, encoded);
            EXPECT_LE(floats, (of_fragment + options.chunk_elements) * 4) << sites << " sites, " << fragments << " fragments";
        }
    }
}

TEST(Exchange, of_fragments_in_turn_ends_with_equal_bits_and_the_mean_of_all) {
    std::uint64_t seed = 40;
    for (const int sites : {1, 2, 3, 5}) {
        for (const std::string codec_name : {"identity", "int8", "int4", "top_k_64"}) {
            for (const std::int64_t overlap : {0, 2}) {
                WorldOptions options;
                options.seed = ++seed;
                SCOPED_TRACE(fmt::format("{} sites, {}, overlap {}, seed {}", sites, codec_name, overlap, seed));
                options.sites = sites;
                options.codec = codec_name;
                options.fragments = 3;
                options.overlap_steps = overlap;
                options.mixed_processors = true;
                options.link = rough_link();
                World world(options);
                ASSERT_TRUE(world.run_to_end());
                expect_equal_bits(world, sites, options.rounds);
                const Commit& commit = world.commits(0).at(Round(2));
                EXPECT_EQ(commit.fragments, 3);
                EXPECT_TRUE(commit.ends_round());
                EXPECT_LT(relative_error(world.means(0).at(Round(2)), world.expected_direct_mean(commit)),
                          commit.direct ? 1e-6 : 0.02);
                EXPECT_EQ(world.driver(0).last_traffic().fragments.size(), 3u);
            }
        }
    }
}

TEST(Exchange, a_site_killed_between_two_fragments_is_in_the_mean_of_the_first_only) {
    WorldOptions options;
    options.sites = 3;
    options.fragments = 2;
    options.overlap_steps = 1;
    World world(options);
    int handed_in = 0;
    world.on_contribute = [&](int site, Round round) {
        if (site == 2 && round == Round(1)) ++handed_in;
    };
    ASSERT_TRUE(world.run_until([&] { return handed_in == 2; }));
    world.kill(2);
    ASSERT_TRUE(world.run_to_end());
    for (int site = 0; site < 2; ++site) {
        EXPECT_EQ(world.means(site), world.means(0));
        EXPECT_EQ(world.commits(site).size(), 3u);
        EXPECT_EQ(world.commits(site).at(Round(1)).contributors.size(), 2u) << "of the last fragment";
        EXPECT_EQ(world.commits(site).at(Round(2)).contributors.size(), 2u);
    }
}

TEST(Exchange, memory_stays_flat_over_many_rounds) {
    WorldOptions options;
    options.rounds = 300;
    options.sites = 3;
    options.elements = 4'000;
    options.link = rough_link();
    World world(options);
    std::int64_t most = 0;
    ASSERT_TRUE(world.run_until(
        [&] {
            most = std::max(most, world.driver(0).stored_bytes());
            return world.all_stopped();
        },
        Milliseconds(600'000)));
    // The own contribution, those to the own share, this round's means and the last one's.
    const std::int64_t chunks = (options.elements + options.chunk_elements - 1) / options.chunk_elements;
    EXPECT_LE(most, 4 * (options.elements + chunks * (4 + 32)));
}

}  // namespace
}  // namespace atl
