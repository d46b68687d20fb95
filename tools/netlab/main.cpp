// netlab: several hosts on one machine, joined by links with delay, rate, loss and queues.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file_system.h"
#include "netlab/hosts.h"
#include "netlab/lab.h"
#include "netlab/lab_command.h"
#include "netlab/shaped_link.h"

namespace atl::netlab {
namespace {

constexpr int kUsageExitCode = 2;

struct CommandLine {
    LabOptions lab;
    std::string report_file;
    bool by_kernel = false;
};

// "0-1:40": the hosts 0 and 1 are 40 ms apart, one way.
void add_pair(const std::string& text, LinkOptions& links) {
    int first = -1, second = -1, used = 0;
    double delay_ms = -1;
    const bool read = std::sscanf(text.c_str(), "%d-%d:%lf%n", &first, &second, &delay_ms, &used) == 3 &&
                      used == static_cast<int>(text.size());
    const auto is_host = [&](int host) { return host >= 0 && host < links.hosts; };
    if (!read || !is_host(first) || !is_host(second) || first == second || delay_ms < 0) {
        throw UserError(fmt::format("--pair {}: not HOST-HOST:MILLISECONDS with two of the hosts 0 to {}",
                                    text, links.hosts - 1));
    }
    links.pair_delay_ms[std::minmax(first, second)] = delay_ms;
}

// "2:10": host 2 sends at 10 Mbit/s.
void add_uplink(const std::string& text, LinkOptions& links) {
    int host = -1, used = 0;
    double mbit_per_s = 0;
    const bool read = std::sscanf(text.c_str(), "%d:%lf%n", &host, &mbit_per_s, &used) == 2 &&
                      used == static_cast<int>(text.size());
    if (!read || host < 0 || host >= links.hosts || mbit_per_s < 0.001) {
        throw UserError(
            fmt::format("--uplink {}: not HOST:MBIT with one of the hosts 0 to {} and at least 0.001", text,
                        links.hosts - 1));
    }
    links.uplink_mbit_per_s[host] = mbit_per_s;
}

void describe(CLI::App& app, CommandLine& line, std::vector<std::string>& pairs,
              std::vector<std::string>& uplinks) {
    LinkOptions& links = line.lab.links;
    app.add_option("--hosts", links.hosts, "how many hosts")->check(CLI::Range(2, Hosts::kMaximumCount));
    app.add_option("--name", line.lab.prefix, "host i is the namespace NAME<i>, 10.77.<i>.1")
        ->check([](const std::string& name) {
            const auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
            const bool good = !name.empty() && name.find_first_not_of(allowed) == std::string::npos;
            return good ? std::string() : "a name has letters, - and _ only";
        });
    app.add_option("--delay-ms", links.delay_ms, "one way, half of the round trip")
        ->check(CLI::Range(0.0, 60e3));
    app.add_option("--rate-mbit", links.rate_mbit_per_s, "Mbit/s of each host, up and down")
        ->check(CLI::Range(0.001, 100e3));
    app.add_option("--loss-percent", links.loss_percent, "packets lost by chance")
        ->check(CLI::Range(0.0, 100.0));
    app.add_option("--queue-kib", links.queue_kib, "depth of a link's queue; 0 = 100 ms at the rate")
        ->check(CLI::Range(0.0, 1e9));
    app.add_option("--mtu", line.lab.mtu_bytes, "bytes of the largest packet")->check(CLI::Range(576, 65535));
    app.add_option("--seed", links.seed, "of the losses");
    app.add_option("--pair", pairs, "HOST-HOST:MS gives two hosts their own one-way delay; repeatable");
    app.add_option("--uplink", uplinks, "HOST:MBIT, what a host sends at, if not at the rate; repeatable");
    app.add_flag("--kernel", line.by_kernel,
                 "two hosts whose link the kernel limits: takes no processor, and has a rate alone");
    app.add_option("--report", line.report_file, "write the hosts' traffic to this file as JSON");
    app.add_option("command", line.lab.command, "what to run, after --")->required();
    app.positionals_at_end();
}

void write_report(const std::string& file, const LabResult& result) {
    auto hosts = nlohmann::json::array();
    for (std::size_t index = 0; index < result.traffic.size(); ++index) {
        const HostTraffic& traffic = result.traffic[index];
        hosts.push_back({{"host", result.host_names[index]},
                         {"sent_packets", traffic.sent_packets},
                         {"sent_bytes", traffic.sent_bytes},
                         {"lost_packets", traffic.lost_packets},
                         {"dropped_packets", traffic.dropped_packets}});
    }
    make_system_file_system()->write_text_atomically(file, nlohmann::json{{"hosts", hosts}}.dump(2) + "\n");
}

// What only emulated links have.
void check_kernel_link(const CLI::App& app) {
    for (const char* option :
         {"--delay-ms", "--loss-percent", "--queue-kib", "--pair", "--report", "--uplink", "--seed"})
        if (app.count(option) > 0)
            throw UserError(fmt::format("{}: the kernel's link has none; leave out --kernel", option));
}

int run_on_kernel_link(const CommandLine& line) {
    if (line.lab.links.hosts != 2)
        throw UserError(fmt::format("--hosts {}: --kernel joins 2", line.lab.links.hosts));
    const ShapedLink link({.prefix = line.lab.prefix,
                           .mtu_bytes = line.lab.mtu_bytes,
                           .rate_mbit_per_s = line.lab.links.rate_mbit_per_s});
    return LabCommand(line.lab.command).wait();
}

int run(int argument_count, char** arguments) {
    CommandLine line;
    std::vector<std::string> pairs, uplinks;
    CLI::App app(
        "Runs COMMAND with hosts NAME0, NAME1, … (network namespaces) joined by emulated links.\n"
        "Inside: ip netns exec NAME0 PROGRAM. Everything is gone when COMMAND ends.",
        "netlab");
    describe(app, line, pairs, uplinks);
    try {
        app.parse(argument_count, arguments);
        for (const auto& pair : pairs) add_pair(pair, line.lab.links);
        for (const auto& uplink : uplinks) add_uplink(uplink, line.lab.links);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kUsageExitCode;
    }
    if (line.by_kernel) {
        check_kernel_link(app);
        return run_on_kernel_link(line);
    }
    const LabResult result = run_lab(line.lab);
    if (!line.report_file.empty()) write_report(line.report_file, result);
    return result.exit_code;
}

}  // namespace
}  // namespace atl::netlab

int main(int argument_count, char** arguments) {
    try {
        return atl::netlab::run(argument_count, arguments);
    } catch (const atl::UserError& error) {
        fmt::print(stderr, "netlab: {}\n", error.what());
        return atl::netlab::kUsageExitCode;
    } catch (const std::exception& error) {
        fmt::print(stderr, "netlab: {}\n", error.what());
        return 1;
    }
}
