// Runs a command while the links of a lab carry packets between its hosts.
//
// One thread polls the hosts' tunnels, stamps each packet with the time at which it is due and writes it to its
// destination then. Threads: the caller's alone; SIGTERM and SIGINT must be blocked in it (they are read here).
// Errors: WorldError when the lab can't be set up or the command can't be started.
#pragma once

#include <string>
#include <vector>

#include "netlab/link_emulator.h"

namespace atl::netlab {

struct LabOptions {
    std::string prefix = "site";
    int mtu_bytes = 1500;
    LinkOptions links;
    std::vector<std::string> command;
};

struct LabResult {
    int exit_code;  // the command's; 128 + n when signal n ended it, or ended the lab
    std::vector<std::string> host_names;
    std::vector<HostTraffic> traffic;  // by host
};

// SIGTERM or SIGINT is passed on to the command, which is killed when it still runs five seconds later.
LabResult run_lab(const LabOptions& options);

}  // namespace atl::netlab
