#include "metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace atl {
namespace {

using Json = nlohmann::ordered_json;

bool is_snake_case(const std::string& name) {
    return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::string escaped(const std::string& text, bool quotes) {
    std::string result;
    for (const char c : text) {
        if (c == '\\' || (quotes && c == '"')) result += '\\';
        if (c == '\n')
            result += "\\n";
        else
            result += c;
    }
    return result;
}

std::string prometheus_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
}

template <class T, class Others>
T& find_or_add(const std::string& name, const std::string& help, auto& metrics, const Others& others) {
    ATOLL_CHECK(is_snake_case(name), "metric \"{}\"", name);
    ATOLL_CHECK(!others.contains(name), "metric {} is of the other kind already", name);
    auto& entry = metrics[name];
    if (!entry.metric) entry = {help, std::make_unique<T>()};
    return *entry.metric;
}

}  // namespace

Counter& MetricRegistry::counter(const std::string& name, const std::string& help) {
    const std::lock_guard lock(mutex_);
    return find_or_add<Counter>(name, help, counters_, gauges_);
}

Gauge& MetricRegistry::gauge(const std::string& name, const std::string& help) {
    const std::lock_guard lock(mutex_);
    return find_or_add<Gauge>(name, help, gauges_, counters_);
}

std::vector<MetricSample> MetricRegistry::samples() const {
    const std::lock_guard lock(mutex_);
    std::vector<MetricSample> samples;
    for (const auto& [name, entry] : counters_)
        samples.push_back({name, entry.help, true, static_cast<double>(entry.metric->value())});
    for (const auto& [name, entry] : gauges_)
        samples.push_back({name, entry.help, false, entry.metric->value()});
    std::ranges::sort(samples, {}, &MetricSample::name);
    return samples;
}

std::string prometheus_text(const std::vector<MetricSample>& samples,
                            const std::map<std::string, std::string>& labels) {
    std::string label_text;
    for (const auto& [label, value] : labels)
        label_text += fmt::format("{}{}=\"{}\"", label_text.empty() ? "" : ",", label, escaped(value, true));
    if (!label_text.empty()) label_text = "{" + label_text + "}";
    std::string text;
    for (const auto& sample : samples) {
        const std::string name = "atoll_" + sample.name;
        text += fmt::format("# HELP {} {}\n", name, escaped(sample.help, false));
        text += fmt::format("# TYPE {} {}\n", name, sample.is_counter ? "counter" : "gauge");
        text += fmt::format("{}{} {}\n", name, label_text, prometheus_number(sample.value));
    }
    return text;
}

std::string json_line(const MetricRecord& record) {
    Json json = Json::object();
    for (const auto& [name, value] : record) {
        const auto* number = std::get_if<double>(&value);
        if (number && !std::isfinite(*number))
            json[name] = nullptr;
        else
            std::visit([&, &key = name](const auto& plain) { json[key] = plain; }, value);
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

MetricsLog::MetricsLog(FileSystem& files, const std::filesystem::path& path) {
    files.create_directories(path.parent_path());
    file_ = files.append_to(path);
}

void MetricsLog::write(const MetricRecord& record) {
    const std::string line = json_line(record) + "\n";
    file_->append(std::as_bytes(std::span(line)));
}

}  // namespace atl
