// The jobs of atoll-worker, one per subcommand of its command line. `atoll` starts it with these; people don't.
//
// Each returns the process's exit code: 0 done, 1 the run failed, 2 wrong input, 3 an accident after which the
// island may be started again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/file_system.h"
#include "core/log.h"

namespace atl {

inline constexpr int kExitAccident = 3;

struct TrainJob {
    std::filesystem::path run_directory;  // holds config.toml
    std::string site;
    std::int32_t threads = 1;
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    std::filesystem::path rendezvous;  // a fresh directory all ranks see; empty: MASTER_ADDR and MASTER_PORT
    std::string resume = "auto";
    std::filesystem::path dump_batches;  // a directory; empty: no dump
};
int run_train_job(const TrainJob& job, FileSystem& files);

struct EvalJob {
    std::filesystem::path checkpoint;
    std::vector<std::string> data;  // token shards (globs), or text files for byte-level models
    std::int64_t windows = 0;       // at most; 0 = all
    std::int32_t threads = 1;
    bool json = false;
};
int run_eval_job(const EvalJob& job, FileSystem& files);

struct BenchJob {
    RunConfig config;
    std::int64_t steps = 10;
    std::int32_t threads = 1;
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    std::filesystem::path rendezvous;  // as in TrainJob
    std::string link;                  // its rate, as said on the command line; empty: as fast as it can
    std::filesystem::path profile;     // of ops, kept from bench to bench; empty: none
    std::filesystem::path picture;     // SVG of a step, planned and measured; empty: none
    std::filesystem::path trace;       // the same for Perfetto
    bool replays = false;              // tries the best few plans
    bool ingredients = false;          // measures what each ingredient of the planner gives
    bool json = false;
};
int run_bench_job(const BenchJob& job, FileSystem& files);
// The same for an island of several ranks: how much of its communication it hides.
int run_overlap_bench_job(const BenchJob& job, FileSystem& files);

}  // namespace atl
