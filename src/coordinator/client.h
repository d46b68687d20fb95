// A site's end of the control connection: reports go out, views come in. Reconnects by itself, also to a coordinator
// that was restarted on another port and wrote its new address into `address_file`.
//
// Control is level-triggered: a report that can't be sent now is dropped (the next heartbeat carries everything), and
// of several views only the newest is handed out. Threads: one, the one that made it. Errors: receive() throws nothing
// but what its deadline allows; a view that does not decode is skipped and counted.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "rounds/control.h"

namespace atl {

struct ControlClientOptions {
    std::string address;                 // host:port; empty: only the file says
    std::filesystem::path address_file;  // may be empty, may not exist yet
    Milliseconds look_again{1'000};      // silence after which the file is read again
};

class ControlClient {
  public:
    ControlClient(ControlClientOptions options, const Clock& clock);
    ~ControlClient();

    // False: not connected now; nothing is queued.
    bool send(const Report& report);
    // The newest view that came in, waiting until the deadline for one; none: it passed.
    std::optional<View> receive(Deadline deadline);
    // Readable when receive() may have something: a descriptor for poll(), valid until the next call of receive().
    int descriptor() const;
    TimePoint last_heard() const;
    std::int64_t dropped() const;  // views that did not decode

  private:
    class Connection;
    std::unique_ptr<Connection> connection_;
};

// The status of a coordinator as one JSON object, and its answer to changed settings ("table.key=value"), also one
// (FORMAT.md of rounds). Both throw CommError if it does not answer by then, UserError if the address is none.
std::string fetch_status(const std::string& address, Milliseconds timeout);
std::string request_changes(const std::string& address, const std::vector<std::string>& assignments,
                            Milliseconds timeout);

}  // namespace atl
