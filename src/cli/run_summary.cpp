#include "cli/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "metrics/progress.h"

namespace atl::cli {
namespace {

using Json = nlohmann::ordered_json;

Json read_summary(const FileSystem& files, const std::filesystem::path& path) {
    try {
        return Json::parse(files.read_text(path));
    } catch (const Json::exception& error) {
        throw CorruptDataError(fmt::format("[run] {} is no JSON: {}", path.string(), error.what()));
    }
}

template <class Combine>
void combine(Json& total, const Json& site, const char* key, Combine operation) {
    if (!site.contains(key) || site[key].is_null()) return;
    total[key] = total.contains(key) && !total[key].is_null() ? operation(total[key], site[key]) : site[key];
}

void add_site(Json& total, const Json& site) {
    const auto sum = [](const Json& a, const Json& b) -> Json {
        if (a.is_number_integer() && b.is_number_integer())
            return a.get<std::int64_t>() + b.get<std::int64_t>();
        return a.get<double>() + b.get<double>();
    };
    const auto largest = [](const Json& a, const Json& b) { return std::max(a, b); };
    const auto smallest = [](const Json& a, const Json& b) { return std::min(a, b); };
    for (const char* key : {"steps", "rounds", "run_tokens", "exchange_seconds", "peak_rss_bytes"})
        combine(total, site, key, largest);
    for (const char* key : {"compute_utilization", "model_flops_utilization"})
        combine(total, site, key, smallest);
    for (const char* key :
         {"tokens_per_second", "payload_bytes_sent", "wire_bytes_sent", "wire_bytes_received"})
        combine(total, site, key, sum);
}

std::string value_text(const Json& site, const char* key, const char* format) {
    if (!site.contains(key) || site[key].is_null()) return "-";
    return fmt::format(fmt::runtime(format), site[key].get<double>());
}

std::string table_line(const std::string& name, const Json& site) {
    return fmt::format("  {:<12} {:>10} {:>10} {:>12} {:>10}  {}\n", name,
                       value_text(site, "train_loss", "{:.4f}"), value_text(site, "val_loss", "{:.4f}"),
                       value_text(site, "tokens_per_second", "{:.0f}"),
                       human_bytes(site.value("payload_bytes_sent", 0.0)),
                       site.value("parameters_blake2b", std::string("-")).substr(0, 16));
}

}  // namespace

RunSummary summarize_run(const FileSystem& files, const std::filesystem::path& run_directory,
                         const std::vector<std::string>& sites) {
    RunSummary summary;
    Json total;
    Json by_site = Json::object();
    std::string lines;
    double train_loss_sum = 0;
    std::int64_t losses = 0;
    for (const auto& name : sites) {
        const auto path = run_directory / "summaries" / (name + ".json");
        if (files.exists(path)) by_site[name] = read_summary(files, path);
    }
    const auto took_part = [](const Json& site) { return site.value("steps", 0) > 0; };
    summary.trained = std::ranges::any_of(by_site, took_part);
    for (const auto& name : sites) {
        if (!by_site.contains(name)) {
            lines += fmt::format("  {:<12} wrote no summary\n", name);
            continue;
        }
        const Json& site = by_site[name];
        ++summary.sites_reporting;
        if (summary.trained &&
            !took_part(site)) {  // it came when the run was over: its parameters are the first ones
            lines += fmt::format("  {:<12} took no step\n", name);
            continue;
        }
        if (total.is_null()) {
            total = site;
        } else {
            summary.hashes_equal &= total["parameters_blake2b"] == site["parameters_blake2b"];
            add_site(total, site);
        }
        if (site.contains("train_loss") && site["train_loss"].is_number()) {
            train_loss_sum += site["train_loss"].get<double>();
            ++losses;
        }
        lines += table_line(name, site);
    }
    if (total.is_null()) total = Json::object();
    if (losses > 0) total["train_loss"] = train_loss_sum / static_cast<double>(losses);
    // Sites that are no longer there, or run elsewhere, have trained on some of them.
    if (total.contains("run_tokens")) {
        total["tokens"] = total["run_tokens"];
        total.erase("run_tokens");
    }
    total["sites"] = by_site;
    summary.json = total.dump(2) + "\n";
    summary.table = fmt::format("  {:<12} {:>10} {:>10} {:>12} {:>10}  {}\n{}", "site", "train_loss",
                                "val_loss", "tokens/s", "sent", "parameters_blake2b", lines);
    return summary;
}

}  // namespace atl::cli
