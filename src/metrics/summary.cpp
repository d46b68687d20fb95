#include "metrics/summary.h"

#include <limits>

namespace atl {

std::string summary_json(const Summary& summary) {
    constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();  // null in the file
    MetricRecord record = {
        {"parameters", summary.parameters},
        {"steps", summary.steps},
        {"rounds", summary.rounds},
        {"tokens", summary.tokens},
        {"train_loss", summary.train_loss.value_or(kNotMeasured)},
        {"val_loss", summary.val_loss.value_or(kNotMeasured)},
        {"tokens_per_second", summary.tokens_per_second.value_or(kNotMeasured)},
        {"model_flops_utilization", summary.model_flops_utilization.value_or(kNotMeasured)},
        {"compute_utilization", summary.compute_utilization.value_or(kNotMeasured)},
        {"payload_bytes_sent", summary.payload_bytes_sent},
        {"wire_bytes_sent", summary.wire_bytes_sent},
        {"wire_bytes_received", summary.wire_bytes_received},
        {"exchange_seconds", summary.exchange_seconds},
        {"peak_rss_bytes", summary.peak_rss_bytes},
        {"parameters_blake2b", summary.parameters_blake2b},
    };
    record.insert(record.end(), summary.more.begin(), summary.more.end());
    return json_line(record);
}

void write_summary(FileSystem& files, const std::filesystem::path& path, const Summary& summary) {
    files.write_text_atomically(path, summary_json(summary) + "\n");
}

}  // namespace atl
