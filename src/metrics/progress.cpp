#include "metrics/progress.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

namespace atl {
namespace {

// `value` with three significant digits and the largest of the prefixes that keeps it at least 1.
std::string with_prefix(double value, const char* separator, const char* kilo) {
    const std::array<std::string, 6> prefixes = {"", kilo, "M", kilo[0] == 'k' ? "B" : "G", "T", "P"};
    std::size_t index = 0;
    double scaled = value;
    while (std::abs(scaled) >= 999.5 && index + 1 < prefixes.size()) {
        scaled /= 1000;
        ++index;
    }
    const double magnitude = std::abs(scaled);
    const bool is_whole = index == 0 && scaled == std::floor(scaled);
    const int digits = is_whole || magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
    return fmt::format("{:.{}f}{}{}", scaled, digits, separator, prefixes[index]);
}

// A line "KEY:   123 kB" of /proc/self/status, in bytes.
std::int64_t status_bytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with(key + ":")) continue;
        std::istringstream rest(line.substr(key.size() + 1));
        std::int64_t kibibytes = 0;
        rest >> kibibytes;
        return kibibytes * 1024;
    }
    return 0;
}

}  // namespace

std::string human_bytes(double bytes) {
    return with_prefix(bytes, " ", "K") + "B";
}

std::string human_count(double count) {
    return with_prefix(count, "", "k");
}

std::string human_duration(double seconds) {
    if (seconds < 9.995) return fmt::format("{:.2f}s", seconds);
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 60) return fmt::format("{}s", whole);
    if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
    if (whole < 100 * 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
    return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string progress_line(const Progress& progress) {
    const int width = static_cast<int>(fmt::formatted_size("{}", progress.steps));
    std::string line = fmt::format("step {:{}}/{}", progress.step, width, progress.steps);
    if (progress.steps > 0)
        line += fmt::format(" {:5.1f}%",
                            100.0 * static_cast<double>(progress.step) / static_cast<double>(progress.steps));
    if (progress.loss) line += fmt::format(" | loss {:.4f}", *progress.loss);
    if (progress.gradient_norm) line += fmt::format(" | grad {:.3g}", *progress.gradient_norm);
    if (progress.lr) line += fmt::format(" | lr {:.2e}", *progress.lr);
    if (progress.tokens_per_second)
        line += fmt::format(" | {} tok/s", human_count(*progress.tokens_per_second));
    if (progress.model_flops_utilization)
        line += fmt::format(" | mfu {:.0f}%", 100 * *progress.model_flops_utilization);
    if (progress.memory_bytes) line += fmt::format(" | {}", human_bytes(*progress.memory_bytes));
    const std::int64_t done = progress.step - progress.first_step;
    if (done > 0) {
        const double seconds_per_step = progress.elapsed_seconds / static_cast<double>(done);
        const auto left = static_cast<double>(progress.steps - progress.step);
        line += fmt::format(" | eta {}", human_duration(left * seconds_per_step));
    }
    return line;
}

std::int64_t peak_rss_bytes() {
    return status_bytes("VmHWM");
}

std::int64_t current_rss_bytes() {
    return status_bytes("VmRSS");
}

}  // namespace atl
