// The round protocol under random schedules of crashes, restarts, cuts, losses, duplicates and reorderings, with the
// coordinator among the victims: what may never happen does not, and once faults stop every run reaches its end.
// Goal of the mutations: the same schedules catch a protocol that is wrong on purpose.
//
// A failing seed is printed; ATOLL_ROUNDS_SEED is not needed: change kFirstSeed and set `print` to look into it.
#include <gtest/gtest.h>

#include "support/round_world.h"

namespace atl::testing {
namespace {

constexpr std::uint64_t kFirstSeed = 1;
constexpr std::uint64_t kSchedules = 1'000;

WorldOptions schedule(std::uint64_t seed) {
    WorldOptions options;
    options.seed = seed;
    options.sites = 2 + int(seed % 4);
    options.min_sites = 1 + std::int64_t(seed / 4 % 2);
    return options;
}

// Three fragments, each exchanged beside two of the inner steps.
WorldOptions streaming_schedule(std::uint64_t seed) {
    WorldOptions options = schedule(seed);
    options.fragments = 3;
    options.inner_steps = 9;
    options.overlap_steps = 2;
    return options;
}

// One exchange beside the whole round.
WorldOptions late_schedule(std::uint64_t seed) {
    WorldOptions options = schedule(seed);
    options.a_round_late = true;
    return options;
}

TEST(Rounds, run_to_the_end_without_faults) {
    for (int sites = 1; sites <= 5; ++sites) {
        WorldOptions options;
        options.seed = std::uint64_t(sites);
        options.sites = sites;
        options.faults = false;
        options.non_finite = 0;
        const WorldOutcome outcome = run_world(options);
        EXPECT_TRUE(outcome.finished) << outcome.state;
        EXPECT_EQ(outcome.rounds, 5) << sites << " sites";
        EXPECT_EQ(outcome.attempts, 0);
        EXPECT_EQ(outcome.resumes, 0);
    }
}

TEST(Rounds, of_several_fragments_run_to_the_end_without_faults) {
    for (int sites = 1; sites <= 5; ++sites) {
        WorldOptions options = streaming_schedule(std::uint64_t(sites));
        options.sites = sites;
        options.faults = false;
        options.non_finite = 0;
        const WorldOutcome outcome = run_world(options);
        EXPECT_TRUE(outcome.finished) << outcome.state;
        EXPECT_EQ(outcome.rounds, 5) << sites << " sites";
        EXPECT_EQ(outcome.attempts, 0);
        EXPECT_EQ(outcome.resumes, 0);
    }
}

void expect_promises_kept(WorldOptions (*schedule)(std::uint64_t), std::uint64_t schedules) {
    std::int64_t crashes = 0;
    std::int64_t attempts = 0;
    std::int64_t resumes = 0;
    for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + schedules; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        try {
            const WorldOutcome outcome = run_world(schedule(seed));
            ASSERT_TRUE(outcome.finished) << outcome.state;
            ASSERT_EQ(outcome.rounds, 5) << outcome.state;
            crashes += outcome.crashes;
            attempts += outcome.attempts;
            resumes += outcome.resumes;
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }
    std::printf(
        "%llu schedules from seed %llu: %lld crashes, %lld later attempts, %lld resumes of the whole run\n",
        static_cast<unsigned long long>(schedules), static_cast<unsigned long long>(kFirstSeed),
        static_cast<long long>(crashes), static_cast<long long>(attempts), static_cast<long long>(resumes));
    const auto count = static_cast<std::int64_t>(schedules);
    EXPECT_GT(crashes, count);
    EXPECT_GT(attempts, count / 10);
    EXPECT_GT(resumes, count / 100);
}

TEST(Rounds, keep_their_promises_under_random_faults_and_finish_once_faults_stop) {
    expect_promises_kept(schedule, kSchedules);
}

TEST(Rounds, of_several_overlapped_fragments_keep_their_promises_under_random_faults) {
    expect_promises_kept(streaming_schedule, kSchedules / 4);
}

TEST(Rounds, whose_exchange_is_beside_the_whole_round_keep_their_promises_under_random_faults) {
    expect_promises_kept(late_schedule, kSchedules / 4);
}

// What every site does in a round follows from the plan alone; the world checks each plan against what was told last.
TEST(Rounds, change_their_length_on_all_sites_at_once_whatever_fails_meanwhile) {
    std::int64_t changed = 0;
    for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kSchedules / 4; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        try {
            WorldOptions options = schedule(seed);
            options.change_steps = true;
            const WorldOutcome outcome = run_world(options);
            ASSERT_TRUE(outcome.finished) << outcome.state;
            changed += outcome.lengths > 1 ? 1 : 0;
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }
    EXPECT_GT(changed, 20) << "schedules in which rounds of two lengths were planned";
}

// The number of schedules until the mistake shows; 0: never. `first`: of the seeds, so that nobody has to wait for one that
// shows late.
std::uint64_t schedules_to_catch(Mutation mutation, WorldOptions (*schedule)(std::uint64_t),
                                 std::uint64_t first = kFirstSeed) {
    for (std::uint64_t seed = first; seed < first + kSchedules; ++seed) {
        WorldOptions options = schedule(seed);
        options.mutation = mutation;
        try {
            run_world(options);
        } catch (const WorldViolation& violation) {
            std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.what());
            return seed - first + 1;
        }
    }
    return 0;
}

// With one fragment, with several that overlap the steps, and with one that overlaps all of them.
void expect_caught(Mutation mutation, std::uint64_t first_of_late = kFirstSeed) {
    EXPECT_GT(schedules_to_catch(mutation, schedule), 0U);
    EXPECT_GT(schedules_to_catch(mutation, streaming_schedule), 0U);
    EXPECT_GT(schedules_to_catch(mutation, late_schedule, first_of_late), 0U);
}

TEST(BrokenRounds, a_site_that_applies_before_the_commit_is_caught) {
    expect_caught(Mutation::apply_before_commit);
}

TEST(BrokenRounds, means_that_are_not_rebuilt_in_a_new_attempt_are_caught) {
    expect_caught(Mutation::stale_means, 180);
}

TEST(BrokenRounds, a_coordinator_that_tells_before_it_stores_is_caught) {
    expect_caught(Mutation::tell_before_store);
}

TEST(BrokenRounds, a_commit_without_the_hash_of_every_member_is_caught) {
    expect_caught(Mutation::forged_hashes);
}

}  // namespace
}  // namespace atl::testing
