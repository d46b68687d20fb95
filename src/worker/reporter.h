// Reporter: what a site says about itself while it trains: one line per logging interval, metrics/SITE.jsonl, scalars
// for TensorBoard, and at the end its summary. Only the gateway has one.
//
// Threads: one caller. Errors: StorageError when a file can't be written.
#pragma once

#include <optional>
#include <string>

#include "config/run_config.h"
#include "core/clock.h"
#include "core/file_system.h"
#include "core/log.h"
#include "exchange/traffic.h"
#include "island/island.h"
#include "metrics/metrics.h"
#include "metrics/summary.h"
#include "metrics/tensorboard.h"

namespace atl {

struct ReporterOptions {
    std::filesystem::path run_directory;
    std::string site;
    double flops_per_step = 0;                // of the whole island
    double matmul_peak_flops_per_second = 0;  // of the whole island
};

// What the exchange has moved.
struct ExchangeTotals {
    std::int64_t payload_bytes_sent = 0;
    std::int64_t wire_bytes_sent = 0;
    std::int64_t wire_bytes_received = 0;
    double seconds = 0;
};
ExchangeTotals operator+(const ExchangeTotals& one, const ExchangeTotals& other);
ExchangeTotals operator-(const ExchangeTotals& one, const ExchangeTotals& other);

// What the figures go on from after a resume; a checkpoint holds it.
struct ReporterProgress {
    std::int64_t run_tokens = 0;   // of all committed rounds, all sites
    std::int64_t site_tokens = 0;  // of those, this site's
    ExchangeTotals exchanged;      // since the run began
    std::optional<double> train_loss;
    std::optional<double> validation_loss;
    // The logging interval that a stop cuts in two.
    double interval_loss_sum = 0;
    std::int64_t interval_tokens = 0;
    double interval_seconds = 0;
    std::int64_t interval_steps = 0;
};

class Reporter {
  public:
    Reporter(ReporterOptions options, const RunConfig& config, FileSystem& files, const Clock& clock,
             Log log);

    void step_done(std::int64_t steps_done, double learning_rate, const StepResult& result);
    // `tokens` of the round's contributors, all sites, `own_tokens` this one's. Totals are since the start of the process.
    void round_committed(std::int64_t round, std::int64_t steps_done, std::size_t contributors,
                         std::int64_t tokens, std::int64_t own_tokens, const ExchangeTotals& totals);
    // What the round's exchange moved, one line per peer and per fragment.
    void exchanged(const RoundTraffic& traffic);
    void evaluated(std::int64_t round, std::int64_t steps_done, double loss);
    void finished(std::int64_t parameters, std::int64_t steps_done, std::int64_t rounds,
                  const std::string& parameters_blake2b, const ExchangeTotals& totals);

    ReporterProgress progress(const ExchangeTotals& totals) const;
    void go_on_from(const ReporterProgress& progress);

  private:
    double elapsed_seconds() const { return seconds(clock_.now() - start_); }

    ReporterOptions options_;
    RunConfig config_;
    FileSystem& files_;
    const Clock& clock_;
    Log log_;
    MetricsLog metrics_;
    TensorBoardWriter board_;
    TimePoint start_;
    double peak_;  // FLOP/s of the whole island, as far as it has been seen
    std::int64_t first_step_ = -1;
    // Since the last line.
    StepResult interval_;
    std::int64_t interval_steps_ = 0;
    // Since the start.
    double step_seconds_ = 0;
    ExchangeTotals before_round_;  // up to the round before
    std::int64_t trained_tokens_ = 0;
    // Since the run began.
    ExchangeTotals before_start_;
    std::int64_t site_tokens_ = 0;
    std::int64_t run_tokens_ = 0;
    std::optional<double> train_loss_;
    std::optional<double> validation_loss_;
};

}  // namespace atl
