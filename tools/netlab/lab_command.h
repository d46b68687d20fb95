// The command that a lab runs, with the signals that end it.
//
// SIGTERM or SIGINT is passed on to the command, which is killed when it still runs five seconds later. Both, and
// SIGCHLD, are blocked in the constructing thread and read as data. Errors: WorldError.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/child_process.h"
#include "core/clock.h"
#include "netlab/namespaces.h"

namespace atl::netlab {

class LabCommand {
  public:
    explicit LabCommand(const std::vector<std::string>& command);

    const Descriptor& signals() const { return signals_; }  // readable when tend() has something to do
    void tend();
    // Its exit code, or 128 + the signal that ended it or that it was asked to end by; nothing while it runs.
    std::optional<int> exit_code();
    int wait();  // for that

  private:
    SystemClock clock_;
    Descriptor signals_;  // before the command, which inherits nothing of it
    ChildProcess command_;
    std::optional<int> ended_by_;
    std::optional<Deadline> kill_at_;
};

}  // namespace atl::netlab
