// The methods of the outer loop as rounds, exchange and checkpoints know them: names, payload, and what the two that are
// a round late do at one site and between sites.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "config/key_table.h"
#include "core/check.h"
#include "core/random.h"
#include "outer/method.h"
#include "outer/outer_model.h"

namespace atl {
namespace {

using Vector = std::vector<float>;
constexpr std::int64_t kElements = 40;

Vector normals(std::uint64_t stream, double scale) {
    const RandomStream random(17, stream);
    Vector values(kElements);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(scale * random.normal(i));
    return values;
}

// One site with one fragment, whose inner steps are given.
struct Site {
    OuterModel model;
    Vector local, delta = Vector(kElements);

    Site(const char* method, OuterRule rule)
        : model({.tensors_and_elements = {{"w", kElements}},
                 .buffers = outer_method(method).buffers(rule),
                 .method = &outer_method(method)}) {
        model.begin(local = normals(1, 1));
    }
    const Vector& contribute(bool overlapped) {
        model.contribute(FragmentId(0), local, {.overlapped = overlapped}, delta);
        return delta;
    }
    void move(const Vector& moves) {
        for (std::size_t i = 0; i < moves.size(); ++i) local[i] -= moves[i];
    }
    void apply(const OuterSettings& settings, const Vector& mean, float share, bool overlapped) {
        model.apply(FragmentId(0), settings, {.mean = mean, .share = share, .overlapped = overlapped}, local);
    }
    Vector anchor() const {
        Vector values(kElements);
        model.copy_anchors(values);
        return values;
    }
};

// What site s's steps of round r come to.
Vector moves_of(int site, int round) { return normals(static_cast<std::uint64_t>(100 * site + round + 10), 0.02); }

// Rounds of several sites with these shares of the weight; the exchange brings everybody the weighted mean.
void run_round(std::vector<Site>& sites, const OuterSettings& settings, const std::vector<float>& shares, int round,
               bool overlapped = true) {
    if (overlapped)
        for (Site& site : sites) site.contribute(true);
    for (std::size_t s = 0; s < sites.size(); ++s) sites[s].move(moves_of(static_cast<int>(s), round));
    if (!overlapped)
        for (Site& site : sites) site.contribute(false);
    Vector mean(kElements);
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += shares[s] * sites[s].delta[i];
    for (std::size_t s = 0; s < sites.size(); ++s) sites[s].apply(settings, mean, shares[s], overlapped);
}

constexpr OuterSettings kNesterov{.rule = OuterRule::nesterov, .lr = 0.7F, .momentum = 0.9F};
constexpr OuterSettings kPlain{.rule = OuterRule::sgd, .lr = 0.5F};

TEST(OuterMethods, are_those_that_the_configuration_knows) {
    std::set<std::string_view> known;
    RunConfig config;
    for (const Key<RunConfig>& key : run_keys()) {
        if (key.full_name() != "outer.method") continue;
        const Field field = key.field(config);
        for (const auto name : std::get<ChoiceField>(field).names) known.insert(name);
    }
    const auto names = outer_method_names();
    EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()), known);
    EXPECT_THROW(outer_method("gossip"), CheckError);
}

TEST(OuterMethods, take_their_rule_from_momentum_and_nesterov) {
    for (const char* name : {"diloco", "delayed", "eager"}) {
        EXPECT_EQ(outer_method(name).rule(0.9, true), OuterRule::nesterov) << name;
        EXPECT_EQ(outer_method(name).rule(0.9, false), OuterRule::heavy_ball) << name;
        EXPECT_EQ(outer_method(name).rule(0, true), OuterRule::sgd) << name;
    }
    EXPECT_EQ(outer_method("average").rule(0.9, true), OuterRule::average);
    EXPECT_EQ(outer_method("adam").rule(0.9, true), OuterRule::adam);
    EXPECT_EQ(outer_method("sparse_loco").rule(0, false), OuterRule::sgd);
}

TEST(OuterMethods, say_what_a_round_sends) {
    const OuterMethod& diloco = outer_method("diloco");
    EXPECT_EQ(diloco.payload_bytes_sent({.contribution_bytes = 800}, 1), 0);
    EXPECT_EQ(diloco.payload_bytes_sent({.contribution_bytes = 800}, 2), 800);
    // Four equal owners, equal sizes both ways: 2(M − 1)/M · V.
    EXPECT_EQ(diloco.payload_bytes_sent({800, 200, 200}, 4), 2 * 3 * 800 / 4);
    // An 8-bit contribution, 16-bit means; a site that owns nothing sends its contribution only.
    EXPECT_EQ(diloco.payload_bytes_sent({800, 200, 400}, 4), 800 - 200 + 3 * 400);
    EXPECT_EQ(diloco.payload_bytes_sent({800, 0, 0}, 5), 800);
    for (const char* late : {"delayed", "eager"})
        EXPECT_EQ(outer_method(late).payload_bytes_sent({800, 200, 200}, 4), 2 * 3 * 800 / 4) << late;
    EXPECT_EQ(outer_method("sparse_loco").payload_bytes_sent({.contribution_bytes = 100}, 5), 400);
}

TEST(Eager, of_one_site_is_diloco_to_the_last_bit) {
    Site eager("eager", kNesterov.rule), diloco("diloco", kNesterov.rule);
    for (int round = 0; round < 6; ++round) {
        eager.contribute(true);
        eager.move(moves_of(0, round));
        eager.apply(kNesterov, Vector(eager.delta), 1, true);
        diloco.move(moves_of(0, round));
        diloco.apply(kNesterov, Vector(diloco.contribute(false)), 1, false);
        EXPECT_EQ(eager.local, diloco.local) << "round " << round;
    }
}

TEST(Eager, sites_are_never_more_than_their_last_contributions_apart) {
    std::vector<Site> sites{{"eager", kPlain.rule}, {"eager", kPlain.rule}};
    for (int round = 0; round < 8; ++round) {
        run_round(sites, kPlain, {0.5F, 0.5F}, round);
        for (std::size_t i = 0; i < kElements; ++i) {
            const float apart = moves_of(0, round)[i] - moves_of(1, round)[i];
            EXPECT_NEAR(sites[0].local[i] - sites[1].local[i], -0.5F / 2 * apart, 1e-6) << "round " << round;
        }
        EXPECT_EQ(sites[0].anchor(), sites[1].anchor());
    }
}

TEST(Eager, first_round_is_a_share_of_the_own_contribution_and_nothing_stale) {
    std::vector<Site> sites{{"eager", kPlain.rule}, {"eager", kPlain.rule}};
    const Vector before = sites[1].local;
    run_round(sites, kPlain, {0.25F, 0.75F}, 0);
    EXPECT_EQ(sites[1].anchor(), before);
    for (std::size_t i = 0; i < kElements; ++i)
        EXPECT_NEAR(sites[1].local[i], before[i] - 0.5F * 0.75F * moves_of(1, 0)[i], 1e-6);
}

// The published form in fp64: each site has parameters and momentum of its own, stepped with the stale mean, corrected
// by its share of what it has since learned.
TEST(Eager, equals_the_published_recursion_of_every_site) {
    const std::vector<float> shares{0.25F, 0.75F};
    std::vector<Site> sites{{"eager", kNesterov.rule}, {"eager", kNesterov.rule}};
    const Vector first = sites[0].local;
    std::vector<std::vector<double>> theta(2, std::vector<double>(first.begin(), first.end())),
        momentum(2, std::vector<double>(kElements)), before = momentum;
    std::vector<double> stale(kElements);
    for (int round = 0; round < 8; ++round) {
        run_round(sites, kNesterov, shares, round);
        std::vector<double> mean(kElements);
        for (std::size_t s = 0; s < 2; ++s) {
            const Vector delta = moves_of(static_cast<int>(s), round);
            for (std::size_t i = 0; i < kElements; ++i) {
                const double mixed = stale[i] + shares[s] * (delta[i] - before[s][i]);
                momentum[s][i] = 0.9F * momentum[s][i] + mixed;
                theta[s][i] -= 0.7F * (mixed + 0.9F * momentum[s][i]);
                before[s][i] = delta[i];
                mean[i] += shares[s] * delta[i];
                EXPECT_NEAR(sites[s].local[i], theta[s][i], 3e-6) << "site " << s << " round " << round;
            }
        }
        stale = mean;
    }
}

TEST(Delayed, a_round_begins_without_what_the_one_before_has_learned) {
    std::vector<Site> sites{{"delayed", kPlain.rule}, {"delayed", kPlain.rule}};
    const Vector before = sites[0].local;
    run_round(sites, kPlain, {0.5F, 0.5F}, 0);
    EXPECT_EQ(sites[0].local, before);
    run_round(sites, kPlain, {0.5F, 0.5F}, 1);
    for (std::size_t i = 0; i < kElements; ++i)
        EXPECT_NEAR(sites[0].local[i], before[i] - 0.5F * (moves_of(0, 0)[i] + moves_of(1, 0)[i]) / 2, 1e-6);
    EXPECT_EQ(sites[0].local, sites[1].local);
}

class LateMethod : public testing::TestWithParam<const char*> {};

TEST_P(LateMethod, leaves_nothing_behind_when_the_last_round_waits) {
    const OuterSettings averaging{.rule = OuterRule::sgd, .lr = 1};
    std::vector<Site> sites{{GetParam(), averaging.rule}, {GetParam(), averaging.rule}};
    Vector expected = sites[0].local;
    for (int round = 0; round < 4; ++round) {
        run_round(sites, averaging, {0.5F, 0.5F}, round, round < 3);
        for (std::size_t i = 0; i < kElements; ++i)
            expected[i] -= (moves_of(0, round)[i] + moves_of(1, round)[i]) / 2;
    }
    for (const Site& site : sites)
        for (std::size_t i = 0; i < kElements; ++i) {
            EXPECT_NEAR(site.local[i], expected[i], 1e-6);
            EXPECT_EQ(site.local[i], site.anchor()[i]);
        }
}

TEST_P(LateMethod, forgets_its_own_where_it_does_not_count) {
    Site site(GetParam(), kNesterov.rule);
    for (int round = 0; round < 3; ++round) {
        site.contribute(true);
        site.move(moves_of(0, round));
        site.apply(kNesterov, Vector(site.delta), round < 2 ? 1 : 0, true);
    }
    EXPECT_EQ(site.local, site.anchor());
    EXPECT_EQ(site.contribute(true), Vector(kElements)) << "there is nothing to hand over";
}

TEST_P(LateMethod, hands_over_the_same_again_after_its_steps_were_dropped_or_it_was_resumed) {
    Site site(GetParam(), kPlain.rule);
    site.contribute(true);
    site.move(moves_of(0, 0));
    site.apply(kPlain, Vector(kElements), 0.5F, true);
    const Vector begun = site.local;
    const Vector handed_over = site.contribute(true);
    EXPECT_NE(handed_over, Vector(kElements));
    site.move(moves_of(0, 1));
    EXPECT_EQ(site.contribute(true), handed_over) << "whatever the local parameters have become";
    site.model.drop_work();
    site.model.copy_starts(site.local);
    EXPECT_EQ(site.local, begun);
    EXPECT_EQ(site.contribute(true), handed_over);
}

INSTANTIATE_TEST_SUITE_P(All, LateMethod, testing::Values("delayed", "eager"));

TEST(Diloco, a_dropped_round_takes_its_pending_contribution_with_it) {
    Site site("diloco", kPlain.rule);
    site.move(moves_of(0, 0));
    site.contribute(true);
    site.model.drop_work();
    site.model.copy_starts(site.local);
    EXPECT_EQ(site.contribute(true), Vector(kElements));
}

}  // namespace
}  // namespace atl
