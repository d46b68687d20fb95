// Numbers a process reports: counters and gauges by name, the JSONL history of a site, Prometheus text.
//
// Names are snake_case and carry their unit (payload_bytes_sent, exchange_seconds, train_loss in nats,
// tokens_per_second); SI units without prefixes.
// Threads: Counter and Gauge from any thread; the registry from any thread; MetricsLog from one.
// Errors: a name used for two kinds or not snake_case is a CheckError; the disk is a StorageError.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/file_system.h"

namespace atl {

class Counter {  // only grows
  public:
    void add(std::int64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
    std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::int64_t> value_{0};
};

class Gauge {  // the last value set
  public:
    void set(double value) { value_.store(value, std::memory_order_relaxed); }
    double value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<double> value_{0};
};

using MetricValue = std::variant<std::int64_t, double, std::string, bool>;
// One object per logging interval, in the order given. A double that is not finite becomes null.
using MetricRecord = std::vector<std::pair<std::string, MetricValue>>;

struct MetricSample {
    std::string name;
    std::string help;
    bool is_counter = false;
    double value = 0;
};

class MetricRegistry {
  public:
    // The same name gives the same object, which lives as long as the registry.
    Counter& counter(const std::string& name, const std::string& help);
    Gauge& gauge(const std::string& name, const std::string& help);
    std::vector<MetricSample> samples() const;  // sorted by name

  private:
    template <class T>
    struct Named {
        std::string help;
        std::unique_ptr<T> metric;
    };
    mutable std::mutex mutex_;
    std::map<std::string, Named<Counter>> counters_;
    std::map<std::string, Named<Gauge>> gauges_;
};

// The text format 0.0.4 that Prometheus scrapes: names "atoll_NAME", with the labels on every line.
std::string prometheus_text(const std::vector<MetricSample>& samples,
                            const std::map<std::string, std::string>& labels);

std::string json_line(const MetricRecord& record);  // one object, no newline

// metrics/SITE.jsonl. A resumed run appends: where a step stands twice, the later line is the run's.
class MetricsLog {
  public:
    MetricsLog(FileSystem& files, const std::filesystem::path& path);  // makes the folder
    void write(const MetricRecord& record);

  private:
    std::unique_ptr<WritableFile> file_;
};

}  // namespace atl
