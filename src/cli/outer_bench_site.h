// One site of `atoll bench outer`: the outer loop of a run with the real exchange and round protocol, but inner steps
// that only take time, over a link of a chosen rate.
//
// Every site calls run_outer_bench_site with its place in the meeting; the host also runs the coordinator. Steps are
// waits on the calling thread, so the exchange has its cores to itself. Errors: CommError, UserError.
#pragma once

#include <vector>

#include "cli/meeting.h"
#include "rounds/control.h"

namespace atl::cli {

struct OuterBenchPlan {
    std::int64_t elements = 0;
    std::string codec = "int8";
    bool zstd = true;
    double step_seconds = 0.1;
    std::int64_t inner_steps = 50;  // 0: the tuner's choice, round by round
    std::int64_t fragments = 1;
    std::int64_t overlap_steps = 0;  // that a fragment's exchange may take beside the inner steps
    std::int64_t rounds = 4;         // timed
    std::int64_t warm_up_rounds = 1;
    double bits_per_second = 0;        // of each site's uplink; 0: as fast as the network
    double later_bits_per_second = 0;  // from `later_round` on; 0: no change
    std::int64_t later_round = 0;
    double delay_seconds = 0;  // one way
    std::uint64_t seed = 1;
    std::string transport = "tcp";
};

struct OuterBenchResult {
    std::vector<RoundCost> rounds;  // the timed ones, as this site saw them
    double wall_seconds = 0;        // from the first timed round's order to train to the last applied mean
    bool sites_hold_equal_bits = false;

    // Time in steps, of the wall time.
    double compute_utilization() const;
};

// `plan` is the host's; guests are told. `local_host`: the address at which the others reach this site.
OuterBenchResult run_outer_bench_site(Meeting& meeting, const std::string& local_host,
                                      const OuterBenchPlan& plan);

}  // namespace atl::cli
