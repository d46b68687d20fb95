// A whole run in virtual time: the coordinator's and the sites' pure state machines over a network that loses,
// delays, reorders and duplicates, with processes that crash and come back with only what was stored.
//
// Weights are stand-ins: per chunk a hash of everything ever applied to it; a Δ is a number that tells whose work it
// is. So the world can say at every commit and apply whether ROUNDS.md §9 holds; a violation throws WorldViolation.
//
// Everything is a function of the seed. One thread. A schedule costs a few milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace atl::testing {

class WorldViolation : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A deliberate mistake of the protocol, made outside the production code.
enum class Mutation {
    none,
    apply_before_commit,  // a site applies as soon as it holds every mean
    stale_means,          // a new attempt keeps the means of the one before
    tell_before_store,    // a crash of the coordinator forgets the last decision it told everybody
    forged_hashes,        // the coordinator believes that all hold what the first one holds
};

struct WorldOptions {
    std::uint64_t seed = 0;
    int sites = 2;
    std::int64_t min_sites = 1;
    Mutation mutation = Mutation::none;
    bool faults = true;
    double non_finite = 0.02;   // share of contributions that are
    bool change_steps = false;  // H is changed once, at a random time
    std::int64_t fragments = 1;
    std::int64_t inner_steps = 3;
    std::int64_t overlap_steps = 0;
    bool a_round_late = false;  // the exchange is beside the whole round, and the last round waits
    bool print = false;         // every decision, for looking into a failing seed
};

struct WorldOutcome {
    bool finished = false;      // the run ended with exit code 0
    std::int64_t rounds = 0;    // committed, truncated ones not counted
    std::int64_t crashes = 0;   // of sites and coordinator
    std::int64_t attempts = 0;  // beyond the first of a round
    std::int64_t resumes = 0;   // whole-run restarts
    std::int64_t lengths = 0;   // of planned rounds, how many different ones, the short last one apart
    double seconds = 0;         // virtual
    std::string state;          // where it stood, if it did not finish
};

WorldOutcome run_world(const WorldOptions& options);

}  // namespace atl::testing
