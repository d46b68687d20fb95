// The coordinator of `atoll bench exchange`: the real server on a thread of its own, its database in a directory that
// vanishes with it.
//
// Threads: one owner. Errors: StorageError, CommError. Destruction ends the run and waits for the thread.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "cli/bench_site.h"
#include "coordinator/server.h"
#include "core/temporary_directory.h"

namespace atl::cli {

inline constexpr const char* kBenchRunId = "bench exchange";
inline constexpr std::int64_t kBenchBlocksPerEpoch = 1'000'000;

class BenchCoordinator {
  public:
    BenchCoordinator(const std::string& host, int sites, const BenchPlan& plan);
    ~BenchCoordinator();
    std::string address() const { return server_->address(); }

  private:
    SystemClock clock_;
    TemporaryDirectory directory_;
    std::unique_ptr<CoordinatorServer> server_;
    std::jthread thread_;
};

}  // namespace atl::cli
