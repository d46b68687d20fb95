#include "simulator/outer_loop.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/check.h"
#include "outer/fragments.h"

namespace atl {
namespace {

constexpr double kForwardShare = 1.0 / 3;  // of a step; backward is twice forward
constexpr std::int32_t kRounds = 3;        // the first fills the pipe, the last is measured

// Writes one site's program and the durations of its ops.
class SiteWriter {
  public:
    SiteWriter(const OuterLoop& loop, std::size_t site) : loop_(loop), builder_(Rank(static_cast<int>(site))) {
        std::vector<Rank> all;
        for (std::size_t i = 0; i < loop.step_seconds.size(); ++i) all.emplace_back(static_cast<int>(i));
        builder_.add_group("sites", all);
        step_seconds_ = loop.step_seconds[site];
    }

    void add_step(std::int32_t step) {
        step_ = step;
        forward(loop_.schedule.applies_after(Step(step)));
        backward(loop_.schedule.starts_after(Step(step + 1)));
        step_ends_.push_back(last_compute_);
    }

    Program take_program() { return builder_.take(); }
    std::vector<double> seconds;    // [op]
    std::vector<OpId> step_ends_;  // [step]: its last op

  private:
    using Fragment = std::optional<FragmentId>;

    bool is_in(const Fragment& fragment, std::int32_t layer) const {
        return fragment_of_layer(layer, loop_.schedule.fragments) == *fragment;
    }
    void compute(OpKind kind, std::int32_t layer, double share, std::vector<OpId> after) {
        last_compute_ = builder_.add(
            Op{.kind = kind, .layer = layer, .micro_batch = step_, .after = std::move(after)});
        seconds.push_back(share * step_seconds_);
    }
    OpId transfer(std::int32_t layer, double share, double latency_seconds) {
        const auto id = builder_.add(Op{.kind = OpKind::all_reduce,
                                        .attributes = CollectiveAttributes{"sites", transfers_++},
                                        .layer = layer,
                                        .micro_batch = step_,
                                        .resource = Resource::link_wan,
                                        .after = {last_compute_}});
        seconds.push_back(share * loop_.exchange_seconds + latency_seconds);
        return id;
    }

    void forward(const Fragment& applied) {
        const double layer_share = kForwardShare / loop_.layers;
        if (!applied) return compute(OpKind::linear, -1, kForwardShare, {});
        auto& arrivals = arrivals_[*applied];
        if (!loop_.by_layer) {
            compute(OpKind::linear, -1, kForwardShare, {arrivals.at(0)});
        } else {
            for (std::int32_t layer = 0; layer < loop_.layers; ++layer)
                compute(OpKind::linear, layer, layer_share,
                        is_in(applied, layer) ? std::vector<OpId>{arrivals.at(layer)} : std::vector<OpId>{});
        }
        arrivals.clear();
    }

    void backward(const Fragment& started) {
        const double share = 1 - kForwardShare;
        if (!started || !loop_.by_layer) compute(OpKind::linear_backward_input, -1, share, {});
        if (!started) return;
        auto& arrivals = arrivals_[*started];
        std::int32_t layers = 0;
        for (std::int32_t layer = 0; layer < loop_.layers; ++layer) layers += is_in(started, layer);
        if (!loop_.by_layer) {
            arrivals.emplace(0, transfer(-1, static_cast<double>(layers) / loop_.layers, loop_.latency_seconds));
            return;
        }
        auto latency_seconds = loop_.latency_seconds;  // once, for what goes first
        for (std::int32_t layer = loop_.layers - 1; layer >= 0; --layer) {
            compute(OpKind::linear_backward_input, layer, share / loop_.layers, {});
            if (!is_in(started, layer)) continue;
            arrivals.emplace(layer, transfer(layer, 1.0 / loop_.layers, std::exchange(latency_seconds, 0)));
        }
    }

    const OuterLoop& loop_;
    ProgramBuilder builder_;
    double step_seconds_ = 0;
    std::int32_t step_ = 0;
    std::int32_t transfers_ = 0;
    OpId last_compute_{-1};
    std::map<FragmentId, std::map<std::int32_t, OpId>> arrivals_;  // of what is under way: [layer], or 0 for all
};

}  // namespace

OuterLoopRun simulate(const OuterLoop& loop) {
    loop.schedule.check();
    ATOLL_CHECK(!loop.step_seconds.empty(), "nobody computes");
    ATOLL_CHECK_LE(loop.schedule.fragments, loop.layers, "fragments of whole layers");
    OuterLoopRun run;
    std::vector<std::vector<double>> seconds;
    std::vector<OpId> step_ends;
    // A fragment that starts late in a round is applied at the beginning of the next one.
    const std::int32_t steps = kRounds * std::max(loop.schedule.inner_steps, 2);
    for (std::size_t site = 0; site < loop.step_seconds.size(); ++site) {
        SiteWriter writer(loop, site);
        for (std::int32_t step = 0; step < steps; ++step) writer.add_step(step);
        seconds.push_back(std::move(writer.seconds));
        step_ends = writer.step_ends_;
        run.programs.push_back(writer.take_program());
    }
    run.times = execute_virtually(run.programs, seconds);
    const auto end_of = [&](std::int32_t step) {
        return run.times.ops[0][static_cast<std::size_t>(step_ends[static_cast<std::size_t>(step)].value())]
            .end_seconds;
    };
    run.round_seconds = end_of(steps - 1) - end_of(steps - 1 - loop.schedule.inner_steps);
    for (const auto step_seconds : loop.step_seconds)
        run.compute_utilization.push_back(loop.schedule.inner_steps * step_seconds / run.round_seconds);
    return run;
}

double longest_exchange_seconds(OuterLoop loop, double compute_utilization) {
    loop.latency_seconds = 0;
    const double round_seconds = loop.schedule.inner_steps * loop.step_seconds.front();
    // No overlap is longer than two rounds, so beyond this the link alone fills what utilization leaves.
    double enough = 1e-6 * round_seconds, too_long = 3 * round_seconds / compute_utilization;
    while (too_long / enough > 1.01) {
        loop.exchange_seconds = std::sqrt(enough * too_long);
        const bool reaches = simulate(loop).compute_utilization.front() >= compute_utilization;
        (reaches ? enough : too_long) = loop.exchange_seconds;
    }
    return enough;
}

}  // namespace atl
