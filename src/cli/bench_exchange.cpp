// `atoll bench exchange`: how long a round's exchange takes, from Δ ready on all sites to the committed mean here.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/bench_hosts.h"
#include "cli/bench_site.h"
#include "cli/verbs.h"
#include "codec/codec.h"
#include "core/statistics.h"

namespace atl::cli {
namespace {

struct BenchExchangeOptions {
    BenchPlan plan;
    BenchHosts hosts;
    double idle_s = 0;
    bool no_zstd = false;
    std::string compare;
    bool json = false;
};

nlohmann::json report(const BenchExchangeOptions& options, int sites, const BenchResult& result) {
    nlohmann::json json{{"sites", sites},
                        {"elements", options.plan.elements},
                        {"codec", options.plan.codec},
                        {"zstd", options.plan.zstd},
                        {"transport", options.plan.transport},
                        {"connections", options.plan.connections},
                        {"shared_memory", result.shared_memory},
                        {"idle_seconds", options.idle_s},
                        {"rounds", result.seconds.size()},
                        {"seconds", median(result.seconds)},
                        {"seconds_minimum", *std::ranges::min_element(result.seconds)},
                        {"seconds_maximum", *std::ranges::max_element(result.seconds)},
                        {"cpu_seconds", median(result.cpu_seconds)},
                        {"payload_bytes", result.payload_bytes_sent},
                        {"payload_bytes_received", result.payload_bytes_received},
                        {"wire_bytes", result.wire_bytes_sent},
                        {"wire_bytes_received", result.wire_bytes_received},
                        {"relative_error", result.relative_error},
                        {"sites_hold_equal_bits", result.sites_hold_equal_bits},
                        {"encrypted", false},
                        {"peak_rss_bytes", result.peak_rss_bytes}};
    if (!result.gloo_seconds.empty()) {
        json["gloo_seconds"] = median(result.gloo_seconds);
        json["gloo_seconds_minimum"] = *std::ranges::min_element(result.gloo_seconds);
        json["gloo_cpu_seconds"] = median(result.gloo_cpu_seconds);
        json["ratio_to_gloo"] = median(result.seconds) / median(result.gloo_seconds);
    }
    return json;
}

void print_exchange(const nlohmann::json& json) {
    fmt::print("{} sites, {} elements, {}{}: {:.4f} s a round (minimum {:.4f}, {} rounds)\n",
               json["sites"].get<int>(), json["elements"].get<std::int64_t>(),
               json["codec"].get<std::string>(),
               json["zstd"].get<bool>() ? " with zstd where it shrinks" : "", json["seconds"].get<double>(),
               json["seconds_minimum"].get<double>(), json["rounds"].get<int>());
    fmt::print(
        "  sent here {:.3f} MB of payload, {:.3f} MB in frames{}; relative error {:.2e}; peak {:.0f} MB\n",
        json["payload_bytes"].get<double>() / 1e6, json["wire_bytes"].get<double>() / 1e6,
        json["shared_memory"].get<bool>() ? ", through memory that the sites share" : "",
        json["relative_error"].get<double>(), json["peak_rss_bytes"].get<double>() / 1e6);
    if (json.contains("ratio_to_gloo")) {
        fmt::print(
            "  Gloo's all-reduce of the same buffers: {:.4f} s; ratio {:.3f}; processor time {:.3f} s here, "
            "{:.3f} s in Gloo\n",
            json["gloo_seconds"].get<double>(), json["ratio_to_gloo"].get<double>(),
            json["cpu_seconds"].get<double>(), json["gloo_cpu_seconds"].get<double>());
    }
}

int run_host(BenchExchangeOptions options) {
    (void)codec_from_name(options.plan.codec);  // an unknown one is refused before anything starts
    options.plan.zstd = !options.no_zstd;
    options.plan.compare_gloo = options.compare == "gloo";
    options.plan.idle_ms = static_cast<std::int64_t>(options.idle_s * 1000);
    GatheredSites gathered = gather_sites(options.hosts, "exchange");
    const BenchResult result = run_bench_site(gathered.meeting, gathered.local_host, options.plan);
    const nlohmann::json json = report(options, gathered.meeting.members(), result);
    if (options.json) {
        fmt::print("{}\n", json.dump());
    } else {
        print_exchange(json);
    }
    return result.sites_hold_equal_bits ? kSuccess : kRunFailed;
}

int bench_exchange(const BenchExchangeOptions& options) {
    if (options.hosts.is_host()) return run_host(options);
    GatheredSites gathered = gather_sites(options.hosts, "exchange");
    const BenchResult result = run_bench_site(gathered.meeting, gathered.local_host, options.plan);
    return result.sites_hold_equal_bits ? kSuccess : kRunFailed;
}

}  // namespace

void add_bench_exchange(CLI::App& bench, Context& context) {
    const auto options = std::make_shared<BenchExchangeOptions>();
    CLI::App& verb = *bench.add_subcommand(
        "exchange", "Time of a round's exchange between sites on this machine, or on several hosts");
    add_host_options(verb, options->hosts);
    verb.add_option("--elements", options->plan.elements,
                    "fp32 values of each site, N(0,1) by (seed, site, index)")
        ->check(at_least(1))
        ->default_val(25'000'000);
    verb.add_option("--codec", options->plan.codec, "What packets are encoded in")->capture_default_str();
    verb.add_flag("--no-zstd", options->no_zstd, "Send packets as the codec made them");
    verb.add_option("--transport", options->plan.transport, "tcp, zmq or gloo")
        ->check(CLI::IsMember({"tcp", "zmq", "gloo"}))
        ->capture_default_str();
    verb.add_option("--connections", options->plan.connections, "Connections per pair of sites (tcp)")
        ->check(whole_number_between(1, 64))
        ->capture_default_str();
    verb.add_flag("!--no-shared-memory", options->plan.shares_memory,
                  "Packets between sites of one host go through their connection, too (tcp)");
    verb.add_flag("--equal-shares", options->plan.equal_shares,
                  "Owners reduce equal parts whatever their uplinks send");
    verb.add_option("--rounds", options->plan.rounds, "Timed rounds")
        ->check(at_least(1))
        ->capture_default_str();
    verb.add_option("--idle", options->idle_s, "Seconds of silence before each timed round")
        ->check(number_between(0, 86'400));
    verb.add_option("--seed", options->plan.seed, "Of the values")->capture_default_str();
    verb.add_option("--compare", options->compare,
                    "gloo: its all-reduce of the same buffers after each round")
        ->check(CLI::IsMember({"gloo"}));
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options] { context.command = [options] { return bench_exchange(*options); }; });
}

}  // namespace atl::cli
