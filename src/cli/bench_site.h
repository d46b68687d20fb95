// One site of `atoll bench exchange`: the real transport, codec and round protocol around a Δ that is always the
// same, and beside it, if asked for, Gloo's own all-reduce of the same numbers.
//
// Every site of the bench calls run_bench_site with its place in the meeting; the host also runs the coordinator.
// Memory: Δ and two or three copies beyond the exchange's own. Errors: CommError, UserError (an unknown codec).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/meeting.h"

namespace atl::cli {

struct BenchPlan {
    std::int64_t elements = 0;
    std::string codec = "int8";
    bool zstd = true;
    std::int64_t rounds = 5;  // timed
    std::int64_t warm_up_rounds = 2;
    std::int64_t idle_ms = 0;  // before each timed round
    std::uint64_t seed = 1;
    bool compare_gloo = false;
    std::string transport = "tcp";
    std::int32_t connections = 1;  // per peer
    bool shares_memory = true;     // sites of one host
    bool equal_shares = false;     // of owners; the coordinator's alone
};

struct BenchResult {
    std::vector<double> seconds;  // from Δ ready on all sites to the committed mean here, per timed round
    std::vector<double> gloo_seconds;  // of Gloo's all-reduce, one after each timed round
    std::vector<double> cpu_seconds;   // of this process in each of them
    std::vector<double> gloo_cpu_seconds;
    std::int64_t payload_bytes_sent = 0;  // in a round; the median of the timed ones
    std::int64_t payload_bytes_received = 0;
    std::int64_t wire_bytes_sent = 0;
    std::int64_t wire_bytes_received = 0;
    bool shared_memory = false;  // with all other sites
    double relative_error = 0;  // of the mean, against the exact one
    bool sites_hold_equal_bits = false;
    std::int64_t peak_rss_bytes = 0;
};

// `plan` is the host's; guests are told. `local_host`: the address at which the others reach this site.
BenchResult run_bench_site(Meeting& meeting, const std::string& local_host, const BenchPlan& plan);

}  // namespace atl::cli
