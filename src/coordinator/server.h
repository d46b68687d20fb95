// The coordinator's process around the pure round protocol: control endpoint, database, status.
//
// One thread runs run(): it takes reports, notes broken connections, stores every decision and only then tells the
// sites. Holds no tensors; memory is a few kB per round. A report is answered within a few ms.
// Threads: run() in one thread; address(), request_stop() from any.
// Errors: CommError (the port is taken), StorageError and CorruptDataError (the database). Bad messages are logged.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "rounds/coordinator_state.h"

namespace atl {

struct ServerOptions {
    CoordinatorOptions protocol;
    std::filesystem::path run_directory;  // coordinator.sqlite and coordinator.address are in it
    std::string address =
        "127.0.0.1:0";         // control endpoint; port 0: the one of the last start, else any free one
    std::string http_address;  // GET /status; empty: none
    Milliseconds farewell{10'000};  // from the end of the run on, for sites that say nothing of what they still do
    bool start_over = false;   // forget the rounds of an earlier start
    std::optional<RunConfig> config =
        {};  // what `protocol` was made of; without it no setting can be changed
};

class CoordinatorServer {
  public:
    // Binds, opens the database, writes the address file.
    CoordinatorServer(ServerOptions options, const Clock& clock, const Log& log);
    ~CoordinatorServer();

    // Until the run has ended and its sites are gone. Returns the run's exit code.
    int run();

    std::string address() const;  // host:port of the control endpoint
    // The run ends for all sites at the next quiescent point. Safe in a signal handler.
    void request_stop();

  private:
    class Loop;
    std::unique_ptr<Loop> loop_;
};

}  // namespace atl
