#include "worker/reporter.h"

#include <algorithm>

#include "metrics/progress.h"

namespace atl {

ExchangeTotals operator+(const ExchangeTotals& one, const ExchangeTotals& other) {
    return {one.payload_bytes_sent + other.payload_bytes_sent, one.wire_bytes_sent + other.wire_bytes_sent,
            one.wire_bytes_received + other.wire_bytes_received, one.seconds + other.seconds};
}

ExchangeTotals operator-(const ExchangeTotals& one, const ExchangeTotals& other) {
    return {one.payload_bytes_sent - other.payload_bytes_sent, one.wire_bytes_sent - other.wire_bytes_sent,
            one.wire_bytes_received - other.wire_bytes_received, one.seconds - other.seconds};
}

Reporter::Reporter(ReporterOptions options, const RunConfig& config, FileSystem& files, const Clock& clock,
                   Log log)
    : options_(std::move(options)),
      config_(config),
      files_(files),
      clock_(clock),
      log_(std::move(log)),
      metrics_(files, options_.run_directory / "metrics" / (options_.site + ".jsonl")),
      board_(files, options_.run_directory / "tensorboard", options_.site, clock),
      start_(clock.now()),
      peak_(options_.matmul_peak_flops_per_second) {}

void Reporter::step_done(std::int64_t steps_done, double learning_rate, const StepResult& result) {
    if (first_step_ < 0) first_step_ = steps_done - 1;
    if (!result.applied)
        log_.warning("[train] step {}: the gradient norm is not finite; nothing was changed", steps_done);
    interval_.loss_sum += result.loss_sum;
    interval_.tokens += result.tokens;
    interval_.seconds += result.seconds;
    interval_.gradient_norm = result.gradient_norm;
    ++interval_steps_;
    trained_tokens_ += result.tokens;
    step_seconds_ += result.seconds;
    // On a busy machine the products at the start may have been slower than what whole steps reach later.
    if (result.seconds > 0) peak_ = std::max(peak_, options_.flops_per_step / result.seconds);
    if (steps_done % config_.monitor.log_interval != 0 && steps_done != config_.train.steps) return;

    train_loss_ = interval_.mean_loss();
    const double tokens_per_second = static_cast<double>(interval_.tokens) / interval_.seconds;
    const double utilization = options_.flops_per_step * static_cast<double>(interval_steps_) /
                               interval_.seconds / peak_;
    log_.info("{}", progress_line({.step = steps_done,
                                   .steps = config_.train.steps,
                                   .elapsed_seconds = elapsed_seconds(),
                                   .first_step = first_step_,
                                   .loss = *train_loss_,
                                   .gradient_norm = interval_.gradient_norm,
                                   .lr = learning_rate,
                                   .tokens_per_second = tokens_per_second,
                                   .model_flops_utilization = utilization,
                                   .memory_bytes = static_cast<double>(current_rss_bytes())}));
    metrics_.write({{"step", steps_done},
                    {"elapsed_seconds", elapsed_seconds()},
                    {"train_loss", *train_loss_},
                    {"gradient_norm", interval_.gradient_norm},
                    {"learning_rate", learning_rate},
                    {"tokens", trained_tokens_},
                    {"tokens_per_second", tokens_per_second},
                    {"model_flops_utilization", utilization},
                    {"rss_bytes", current_rss_bytes()}});
    board_.scalar("train/loss", steps_done, *train_loss_);
    board_.scalar("train/gradient_norm", steps_done, interval_.gradient_norm);
    board_.scalar("train/learning_rate", steps_done, learning_rate);
    board_.scalar("train/tokens_per_second", steps_done, tokens_per_second);
    interval_ = {};
    interval_steps_ = 0;
}

void Reporter::round_committed(std::int64_t round, std::int64_t steps_done, std::size_t contributors,
                               std::int64_t tokens, std::int64_t own_tokens, const ExchangeTotals& totals) {
    run_tokens_ += tokens;
    site_tokens_ += own_tokens;
    const ExchangeTotals moved = totals - before_round_;
    before_round_ = totals;
    log_.info("round {} committed at step {}: {} site{}, sent {}, exchange {}", round, steps_done,
              contributors, contributors == 1 ? "" : "s",
              human_bytes(static_cast<double>(moved.payload_bytes_sent)), human_duration(moved.seconds));
    metrics_.write({{"round", round},
                    {"step", steps_done},
                    {"elapsed_seconds", elapsed_seconds()},
                    {"contributors", static_cast<std::int64_t>(contributors)},
                    {"exchange_seconds", moved.seconds},
                    {"payload_bytes_sent", moved.payload_bytes_sent},
                    {"wire_bytes_sent", moved.wire_bytes_sent},
                    {"wire_bytes_received", moved.wire_bytes_received}});
}

void Reporter::exchanged(const RoundTraffic& traffic) {
    const std::int64_t round = traffic.round.value();
    for (const PeerCounters& peer : traffic.peers) {
        metrics_.write({{"round", round},
                        {"peer", config_.sites.at(static_cast<std::size_t>(peer.site.value())).name},
                        {"payload_bytes_sent", peer.payload_bytes_sent},
                        {"payload_bytes_received", peer.payload_bytes_received},
                        {"wire_bytes_sent", peer.wire_bytes_sent},
                        {"wire_bytes_received", peer.wire_bytes_received},
                        {"frames_corrupt", peer.frames_corrupt}});
    }
    for (const FragmentTraffic& fragment : traffic.fragments) {
        metrics_.write({{"round", round},
                        {"fragment", std::int64_t{fragment.fragment.value()}},
                        {"exchange_seconds", fragment.seconds},
                        {"raw_bytes_sent", fragment.raw_bytes_sent},
                        {"raw_bytes_received", fragment.raw_bytes_received},
                        {"payload_bytes_sent", fragment.payload_bytes_sent},
                        {"payload_bytes_received", fragment.payload_bytes_received}});
    }
}

void Reporter::evaluated(std::int64_t round, std::int64_t steps_done, double loss) {
    validation_loss_ = loss;
    log_.info("round {} step {}: validation loss {:.4f} nats per token", round, steps_done, loss);
    metrics_.write({{"round", round}, {"step", steps_done}, {"val_loss", loss}});
    board_.scalar("validation/loss", steps_done, loss);
}

ReporterProgress Reporter::progress(const ExchangeTotals& totals) const {
    return {.run_tokens = run_tokens_,
            .site_tokens = site_tokens_,
            .exchanged = before_start_ + totals,
            .train_loss = train_loss_,
            .validation_loss = validation_loss_,
            .interval_loss_sum = interval_.loss_sum,
            .interval_tokens = interval_.tokens,
            .interval_seconds = interval_.seconds,
            .interval_steps = interval_steps_};
}

void Reporter::go_on_from(const ReporterProgress& progress) {
    run_tokens_ = progress.run_tokens;
    site_tokens_ = progress.site_tokens;
    before_start_ = progress.exchanged;
    train_loss_ = progress.train_loss;
    validation_loss_ = progress.validation_loss;
    interval_ = {};
    interval_.loss_sum = progress.interval_loss_sum;
    interval_.tokens = progress.interval_tokens;
    interval_.seconds = progress.interval_seconds;
    interval_steps_ = progress.interval_steps;
}

void Reporter::finished(std::int64_t parameters, std::int64_t steps_done, std::int64_t rounds,
                        const std::string& parameters_blake2b, const ExchangeTotals& totals) {
    Summary summary;
    summary.parameters = parameters;
    summary.steps = steps_done;
    summary.rounds = rounds;
    summary.tokens = site_tokens_;
    summary.train_loss = train_loss_;
    summary.val_loss = validation_loss_;
    if (step_seconds_ > 0) {
        const auto steps = static_cast<double>(steps_done - first_step_);
        summary.tokens_per_second = static_cast<double>(trained_tokens_) / elapsed_seconds();
        summary.compute_utilization = step_seconds_ / elapsed_seconds();
        summary.model_flops_utilization =
            options_.flops_per_step * steps / step_seconds_ / peak_;
    }
    const ExchangeTotals exchanged = before_start_ + totals;
    summary.payload_bytes_sent = exchanged.payload_bytes_sent;
    summary.wire_bytes_sent = exchanged.wire_bytes_sent;
    summary.wire_bytes_received = exchanged.wire_bytes_received;
    summary.exchange_seconds = exchanged.seconds;
    summary.peak_rss_bytes = peak_rss_bytes();
    summary.parameters_blake2b = parameters_blake2b;
    summary.more = {{"site", options_.site}, {"run_tokens", run_tokens_}};
    const auto directory = options_.run_directory / "summaries";
    files_.create_directories(directory);
    write_summary(files_, directory / (options_.site + ".json"), summary);
}

}  // namespace atl
