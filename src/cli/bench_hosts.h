// Where the sites of a benchmark run: all on this machine, or each on a host of its own.
//
// gather_sites lets them meet: the host (site 0) listens and, on one machine, starts the others as processes, which
// end with the result. Errors: UserError for an address that is none, CommError when a site does not come.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "cli/meeting.h"
#include "core/child_process.h"

namespace atl::cli {

struct BenchHosts {
    int sites = 2;
    std::string bind;         // several hosts: site 0 listens here
    std::string coordinator;  // the others dial it there
    int site = 0;

    bool is_host() const { return coordinator.empty(); }
};
void add_host_options(CLI::App& verb, BenchHosts& hosts);  // --sites, --bind, --coordinator, --site

struct GatheredSites {
    Meeting meeting;
    std::string local_host;            // where the others reach this site
    std::vector<ChildProcess> guests;  // on this machine
};
// `subverb` of `atoll bench` is what the other sites are started with.
GatheredSites gather_sites(const BenchHosts& hosts, const std::string& subverb);

}  // namespace atl::cli
