#include "cli/bench_hosts.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "comm/island/rendezvous.h"
#include "core/error.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kMeetingPatience{120'000};
const std::string kThisMachine = "127.0.0.1:0";

std::string host_of(const std::string& address) {
    return address.substr(0, address.rfind(':'));
}

std::uint16_t port_of(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    int port = 0;
    if (colon == std::string::npos || !CLI::detail::lexical_cast(address.substr(colon + 1), port) ||
        port < 0 || port > 65'535)
        throw UserError(fmt::format("[bench] {} is not HOST:PORT", address));
    return static_cast<std::uint16_t>(port);
}

std::vector<ChildProcess> start_guests(const std::string& subverb, const std::string& address, int sites) {
    std::vector<ChildProcess> guests;
    for (int site = 1; site < sites; ++site) {
        guests.emplace_back(
            ChildOptions{.command = {(program_directory() / "atoll").string(), "bench", subverb,
                                     "--coordinator", address, "--site", std::to_string(site)}});
    }
    return guests;
}

}  // namespace

void add_host_options(CLI::App& verb, BenchHosts& hosts) {
    verb.add_option("--sites", hosts.sites, "Number of sites")->check(whole_number_between(2, 256))->capture_default_str();
    verb.add_option("--bind", hosts.bind, "HOST:PORT: listen there for sites on other hosts, as site 0");
    verb.add_option("--coordinator", hosts.coordinator, "HOST:PORT that site 0 was given as --bind")
        ->excludes("--bind");
    verb.add_option("--site", hosts.site, "This host's number, 0 with --bind")->check(at_least(0));
}

GatheredSites gather_sites(const BenchHosts& hosts, const std::string& subverb) {
    if (!hosts.is_host()) {
        if (hosts.site == 0)
            throw UserError("[bench] --coordinator is for the other sites: give --site 1 or more");
        const std::string local =
            local_address_towards(host_of(hosts.coordinator), port_of(hosts.coordinator));
        return {Meeting::guest(hosts.coordinator, hosts.site, kMeetingPatience), local, {}};
    }
    const std::string address = hosts.bind.empty() ? kThisMachine : hosts.bind;
    (void)port_of(address);
    Meeting meeting = Meeting::host(address, hosts.sites, kMeetingPatience);
    auto guests = hosts.bind.empty() ? start_guests(subverb, meeting.address(), hosts.sites)
                                     : std::vector<ChildProcess>();
    return {std::move(meeting), host_of(address), std::move(guests)};
}

}  // namespace atl::cli
