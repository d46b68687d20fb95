// `atoll bench kernels`: how fast each codec encodes and decodes under each instruction set, beside memcpy.
#include <fmt/format.h>
#include <time.h>

#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "codec/codec_speed.h"

namespace atl::cli {
namespace {

// Processor time of the calling thread: what others do on a busy machine is left out, but for the caches and memory
// they share.
class ProcessorClock final : public Clock {
  public:
    TimePoint now() const override {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
    }
    std::int64_t unix_ms() const override { return SystemClock().unix_ms(); }
};

struct BenchKernelsOptions {
    std::int64_t elements = 4 << 20;
    int repetitions = 15;
    bool json = false;
};

nlohmann::json report(const BenchKernelsOptions& options, const std::vector<CodecSpeed>& speeds) {
    const double bytes = 4.0 * static_cast<double>(options.elements);
    const CodecSpeed& copy = speeds.front();
    nlohmann::json rows = nlohmann::json::array();
    for (const CodecSpeed& speed : speeds) {
        rows.push_back({{"instruction_set", speed.instruction_set},
                        {"codec", speed.codec},
                        {"operation", speed.operation},
                        {"bytes_per_second", bytes / speed.median_seconds},
                        {"bytes_per_second_best", bytes / speed.minimum_seconds},
                        {"ratio_to_memcpy", copy.median_seconds / speed.median_seconds}});
    }
    return {{"elements", options.elements}, {"repetitions", options.repetitions}, {"speeds", rows}};
}

void print_speeds(const nlohmann::json& report) {
    fmt::print("GB/s of fp32 and processor time, one thread, {} elements, median of {} (fastest):\n",
               report["elements"].get<std::int64_t>(), report["repetitions"].get<int>());
    fmt::print("{:10} {:10} {:12} {:>14} {:>10}\n", "set", "codec", "operation", "GB/s", "of memcpy");
    for (const nlohmann::json& row : report["speeds"]) {
        fmt::print("{:10} {:10} {:12} {:6.2f} ({:5.2f}) {:9.0f}%\n",
                   row["instruction_set"].get<std::string>(), row["codec"].get<std::string>(),
                   row["operation"].get<std::string>(), row["bytes_per_second"].get<double>() / 1e9,
                   row["bytes_per_second_best"].get<double>() / 1e9,
                   100 * row["ratio_to_memcpy"].get<double>());
    }
}

int bench_kernels(const BenchKernelsOptions& options) {
    const nlohmann::json result =
        report(options, measure_codecs(options.elements, options.repetitions, ProcessorClock()));
    if (options.json)
        fmt::print("{}\n", result.dump(2));
    else
        print_speeds(result);
    return kSuccess;
}

}  // namespace

void add_bench_kernels(CLI::App& bench, Context& context) {
    const auto options = std::make_shared<BenchKernelsOptions>();
    CLI::App& verb = *bench.add_subcommand("kernels", "Speed of every codec, beside memcpy");
    verb.add_option("--elements", options->elements, "fp32 values")
        ->check(whole_number_between(1, 1 << 28))
        ->capture_default_str();
    verb.add_option("--repetitions", options->repetitions, "Timed ones")
        ->check(whole_number_between(1, 1'000'000))
        ->capture_default_str();
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options] { context.command = [options] { return bench_kernels(*options); }; });
}

}  // namespace atl::cli
