// summary.json: what a finished run reports. Figures a run did not measure are null in the file.
//
// Units are in the names; losses are nats per token; utilizations are shares in [0, 1].
// Errors: StorageError when it can't be written; the file is replaced whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/file_system.h"
#include "metrics/metrics.h"

namespace atl {

struct Summary {
    std::int64_t parameters = 0;  // count; tied tensors once
    std::int64_t steps = 0;
    std::int64_t rounds = 0;  // committed
    std::int64_t tokens = 0;  // of committed rounds; a site's summary: its own
    std::optional<double> train_loss;
    std::optional<double> val_loss;
    std::optional<double> tokens_per_second;
    std::optional<double> model_flops_utilization;
    std::optional<double> compute_utilization;  // share of the time spent in inner steps
    std::int64_t payload_bytes_sent = 0;
    std::int64_t wire_bytes_sent = 0;
    std::int64_t wire_bytes_received = 0;
    double exchange_seconds = 0;
    std::int64_t peak_rss_bytes = 0;
    std::string parameters_blake2b;
    MetricRecord more;  // further keys, after these
};

std::string summary_json(const Summary& summary);
void write_summary(FileSystem& files, const std::filesystem::path& path, const Summary& summary);

}  // namespace atl
