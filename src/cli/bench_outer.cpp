// `atoll bench outer`: how much of the time is compute when sites train H steps and exchange, H and the link's rate
// being one value or every combination of several, measured beside what the tuner predicts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/bench_hosts.h"
#include "cli/outer_bench_site.h"
#include "cli/verbs.h"
#include "codec/codec.h"
#include "core/error.h"
#include "outer/tuner.h"

namespace atl::cli {
namespace {

struct BenchOuterOptions {
    OuterBenchPlan plan;
    BenchHosts hosts;
    std::vector<double> rates_mbit{0};
    std::vector<std::string> inner_steps{"50"};
    double later_rate_mbit = 0;
    double delay_ms = 0;
    bool no_zstd = false;
    bool json = false;
};

std::int64_t inner_steps_of(const std::string& text) {
    std::int64_t steps = 0;
    if (text == "auto") return 0;
    if (!CLI::detail::lexical_cast(text, steps) || steps < 1)
        throw UserError(
            fmt::format("[bench] --inner-steps {}: must be a whole number from 1 on, or auto", text));
    return steps;
}

// The rate, delay and bytes are the emulated ones, and nothing else is known: no measured time goes in.
double predicted_utilization(const OuterBenchPlan& plan, const RoundCost& cost, std::int64_t sites) {
    TunerInput input;
    input.step_seconds = plan.step_seconds;
    input.bits_per_second = plan.later_bits_per_second > 0 && cost.round.value() >= plan.later_round
                                ? plan.later_bits_per_second
                                : plan.bits_per_second;
    // A site hears of the others' contributions, and, if there are owners, of means after that.
    input.round_trip_seconds = (sites <= 2 ? 1 : 2) * plan.delay_seconds;
    input.inner_steps = {cost.inner_steps};
    const CodecChoice codec{
        plan.codec, static_cast<double>(std::max(cost.payload_bytes_sent(), cost.payload_bytes_received())),
        0};
    return predict(input, cost.inner_steps, codec, {plan.fragments, plan.overlap_steps}).compute_utilization;
}

nlohmann::json report(const OuterBenchPlan& plan, std::int64_t sites, const OuterBenchResult& result) {
    const RoundCost& last = result.rounds.back();
    std::vector<std::int64_t> by_round;
    for (const RoundCost& round : result.rounds) by_round.push_back(round.inner_steps);
    nlohmann::json point{{"bits_per_second", plan.bits_per_second},
                         {"automatic", plan.inner_steps == 0},
                         {"inner_steps", last.inner_steps},
                         {"rounds", result.rounds.size()},
                         {"wall_seconds", result.wall_seconds},
                         {"stall_seconds", last.stall_seconds()},
                         {"exchange_seconds", last.exchange_seconds},
                         {"payload_bytes", last.payload_bytes_sent()},
                         {"compute_utilization", result.compute_utilization()},
                         {"compute_utilization_predicted", predicted_utilization(plan, last, sites)},
                         {"sites_hold_equal_bits", result.sites_hold_equal_bits}};
    if (plan.inner_steps != 0) return point;
    point["inner_steps_by_round"] = by_round;
    point["compute_utilization"] = last.compute_utilization();  // of the round whose H it ended with
    return point;
}

// The time to equal loss by what was measured, in the logarithm, up to a constant.
double measured_log_time(const nlohmann::json& point, std::int64_t sites) {
    return -std::log(point["compute_utilization"].get<double>()) +
           loss_model(sites, 0).kappa() * std::log(point["inner_steps"].get<double>());
}

// Of each rate the fixed H with the shortest measured time to equal loss, and beside it the tuner's.
nlohmann::json best_by_rate(const nlohmann::json& points, std::int64_t sites) {
    nlohmann::json rates = nlohmann::json::array();
    for (const auto& point : points) {
        auto rate = std::ranges::find_if(
            rates, [&](const auto& known) { return known["bits_per_second"] == point["bits_per_second"]; });
        if (rate == rates.end()) {
            rates.push_back({{"bits_per_second", point["bits_per_second"]}});
            rate = std::prev(rates.end());
        }
        if (point["automatic"].get<bool>()) {
            (*rate)["inner_steps_automatic"] = point["inner_steps"];
            continue;
        }
        const double log_time = measured_log_time(point, sites);
        if (rate->contains("log_time") && (*rate)["log_time"].get<double>() <= log_time) continue;
        (*rate)["log_time"] = log_time;
        (*rate)["inner_steps_best"] = point["inner_steps"];
    }
    return rates;
}

void print_bench_outer_report(const nlohmann::json& json) {
    fmt::print("{:>10} {:>6} {:>9} {:>9} {:>9}  {}\n", "Mbit/s", "H", "compute", "predicted", "stall s",
               "payload");
    for (const auto& point : json["points"]) {
        fmt::print("{:>10.1f} {:>6} {:>7.1f} % {:>7.1f} % {:>9.3f}  {:.3f} MB{}\n",
                   point["bits_per_second"].get<double>() / 1e6, point["inner_steps"].get<std::int64_t>(),
                   100 * point["compute_utilization"].get<double>(),
                   100 * point["compute_utilization_predicted"].get<double>(),
                   point["stall_seconds"].get<double>(), point["payload_bytes"].get<double>() / 1e6,
                   point["automatic"].get<bool>() ? " auto " + point["inner_steps_by_round"].dump() : "");
    }
    for (const auto& rate : json["rates"]) {
        if (!rate.contains("inner_steps_best") || !rate.contains("inner_steps_automatic")) continue;
        fmt::print("{:.1f} Mbit/s: shortest time to equal loss at H = {}, auto chose {}\n",
                   rate["bits_per_second"].get<double>() / 1e6, rate["inner_steps_best"].get<std::int64_t>(),
                   rate["inner_steps_automatic"].get<std::int64_t>());
    }
}

void require_overlap_fits(const OuterBenchPlan& plan, std::int64_t inner_steps) {
    if (plan.fragments == 1 && plan.overlap_steps == 0) return;
    if (inner_steps == 0)
        throw UserError("[bench] --inner-steps auto is for one fragment without overlap");
    if (plan.fragments > inner_steps || plan.overlap_steps * plan.fragments >= inner_steps)
        throw UserError(fmt::format(
            "[bench] --overlap-steps {}: must be below --inner-steps / --fragments = {} / {}",
            plan.overlap_steps, inner_steps, plan.fragments));
}

int run_host(const BenchOuterOptions& options) {
    (void)codec_from_name(options.plan.codec);  // an unknown one is refused before anything starts
    if (!options.hosts.bind.empty() && options.rates_mbit.size() * options.inner_steps.size() > 1)
        throw UserError("[bench] on several hosts one rate and one number of steps at a time");
    if (options.plan.fragments > options.plan.elements)
        throw UserError(fmt::format("[bench] --fragments {}: must be at most --elements {}",
                                    options.plan.fragments, options.plan.elements));
    for (const std::string& steps : options.inner_steps) require_overlap_fits(options.plan, inner_steps_of(steps));
    nlohmann::json points = nlohmann::json::array();
    bool equal = true;
    int sites = 0;
    for (const double rate : options.rates_mbit) {
        for (const std::string& steps : options.inner_steps) {
            OuterBenchPlan plan = options.plan;
            plan.zstd = !options.no_zstd;
            plan.inner_steps = inner_steps_of(steps);
            plan.bits_per_second = 1e6 * rate;
            plan.later_bits_per_second = 1e6 * options.later_rate_mbit;
            plan.delay_seconds = 1e-3 * options.delay_ms;
            GatheredSites gathered = gather_sites(options.hosts, "outer");
            sites = gathered.meeting.members();
            const OuterBenchResult result = run_outer_bench_site(gathered.meeting, gathered.local_host, plan);
            if (result.rounds.empty()) throw CommError("[bench] no timed round was committed");
            equal = equal && result.sites_hold_equal_bits;
            points.push_back(report(plan, sites, result));
        }
    }
    const nlohmann::json json{{"sites", sites},
                              {"elements", options.plan.elements},
                              {"codec", options.plan.codec},
                              {"fragments", options.plan.fragments},
                              {"overlap_steps", options.plan.overlap_steps},
                              {"step_seconds", options.plan.step_seconds},
                              {"delay_seconds", 1e-3 * options.delay_ms},
                              {"points", points},
                              {"rates", best_by_rate(points, sites)}};
    if (options.json) {
        fmt::print("{}\n", json.dump());
    } else {
        print_bench_outer_report(json);
    }
    return equal ? kSuccess : kRunFailed;
}

int bench_outer(const BenchOuterOptions& options) {
    if (options.hosts.is_host()) return run_host(options);
    GatheredSites gathered = gather_sites(options.hosts, "outer");
    const OuterBenchResult result = run_outer_bench_site(gathered.meeting, gathered.local_host, options.plan);
    return result.sites_hold_equal_bits ? kSuccess : kRunFailed;
}

}  // namespace

void add_bench_outer(CLI::App& bench, Context& context) {
    const auto options = std::make_shared<BenchOuterOptions>();
    CLI::App& verb = *bench.add_subcommand(
        "outer", "Share of time that is compute, with inner steps that only take time and the real exchange");
    verb.add_option("--elements", options->plan.elements, "fp32 values of each site's pseudo-gradient")
        ->check(at_least(1))
        ->default_val(25'000'000);
    verb.add_option("--codec", options->plan.codec, "What packets are encoded in")->capture_default_str();
    verb.add_flag("--no-zstd", options->no_zstd, "Send packets as the codec made them");
    verb.add_option("--transport", options->plan.transport, "tcp, zmq or gloo")
        ->check(CLI::IsMember({"tcp", "zmq", "gloo"}))
        ->capture_default_str();
    verb.add_option("--step-seconds", options->plan.step_seconds, "How long an inner step takes")
        ->check(number_above_zero())
        ->capture_default_str();
    verb.add_option("--inner-steps", options->inner_steps, "H, or auto; several with commas")
        ->delimiter(',')
        ->capture_default_str();
    verb.add_option("--fragments", options->plan.fragments, "Exchanged one after another, spread over a round")
        ->check(at_least(1))
        ->capture_default_str();
    verb.add_option("--overlap-steps", options->plan.overlap_steps,
                    "Inner steps that a fragment's exchange may take beside them")
        ->check(at_least(0))
        ->capture_default_str();
    verb.add_option("--rate-mbit", options->rates_mbit,
                    "Mbit/s of each site's uplink, emulated; several with commas; 0 = as fast as it goes")
        ->delimiter(',')
        ->check(number_from_zero())
        ->capture_default_str();
    auto* later_rate = verb.add_option("--later-rate-mbit", options->later_rate_mbit, "Mbit/s from --later-round on")
                           ->check(number_from_zero());
    auto* later_round = verb.add_option("--later-round", options->plan.later_round, "Round at which the rate changes")
                            ->check(at_least(0));
    later_rate->needs(later_round);
    later_round->needs(later_rate);
    verb.add_option("--delay-ms", options->delay_ms, "One way, emulated")->check(number_from_zero());
    verb.add_option("--rounds", options->plan.rounds, "Timed rounds")
        ->check(at_least(1))
        ->capture_default_str();
    verb.add_option("--seed", options->plan.seed, "Of the values")->capture_default_str();
    add_host_options(verb, options->hosts);
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options] { context.command = [options] { return bench_outer(*options); }; });
}

}  // namespace atl::cli
