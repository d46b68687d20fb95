// What people read: the progress line of a run, numbers with human units, and this process's memory.
//
// Pure functions but for the two memory readers, which read /proc of this process and return 0 where it is
// missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace atl {

struct Progress {
    std::int64_t step = 0;
    std::int64_t steps = 0;  // of the whole run
    double elapsed_seconds = 0;
    std::int64_t first_step = 0;  // where this process began: the ETA counts steps since then
    std::optional<double> loss;   // nats per token
    std::optional<double> gradient_norm;
    std::optional<double> lr;
    std::optional<double> tokens_per_second;
    std::optional<double> model_flops_utilization;
    std::optional<double> memory_bytes;
};

// "step  120/2000   6.0% | loss 2.3456 | grad 0.87 | lr 3.00e-04 | 12.3k tok/s | mfu 61% | 812 MB | eta 3m04s"
std::string progress_line(const Progress& progress);

std::string human_bytes(double bytes);       // "812 MB": powers of 1000
std::string human_count(double count);       // "12.3k", "1.24B"
std::string human_duration(double seconds);  // "0.42s", "3m04s", "2h05m"

std::int64_t peak_rss_bytes();
std::int64_t current_rss_bytes();

}  // namespace atl
