// The coordinator of a benchmark between sites: the real server on a thread of its own, its database in a directory that
// vanishes with it.
//
// Threads: one owner. Errors: StorageError, CommError. Destruction ends the run and waits for the thread.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "coordinator/server.h"
#include "core/temporary_directory.h"

namespace atl::cli {

inline constexpr const char* kBenchRunId = "bench";
inline constexpr std::int64_t kBenchBlocksPerEpoch = 1'000'000;

class BenchCoordinator {
  public:
    BenchCoordinator(const std::string& host, int sites, const RunNumbers& numbers);
    ~BenchCoordinator();
    std::string address() const { return server_->address(); }
    void request_stop() { server_->request_stop(); }

  private:
    SystemClock clock_;
    TemporaryDirectory directory_;
    std::unique_ptr<CoordinatorServer> server_;
    std::jthread thread_;
};

}  // namespace atl::cli
