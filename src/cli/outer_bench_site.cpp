#include "cli/outer_bench_site.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench_coordinator.h"
#include "cli/bench_member.h"
#include "cli/paced_transport.h"
#include "codec/codec.h"
#include "coordinator/coordinator_link.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/random.h"
#include "exchange/round_stopwatch.h"
#include "exchange/site_exchange.h"
#include "outer/tuner.h"
#include "rounds/overloaded.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kOuterBenchPatience{600'000};
constexpr std::int64_t kEndless = 1'000'000'000;  // steps; the host ends a tuned run after its rounds

std::string to_text(const OuterBenchPlan& plan, const std::string& coordinator) {
    return nlohmann::json{{"elements", plan.elements},
                          {"codec", plan.codec},
                          {"zstd", plan.zstd},
                          {"step_seconds", plan.step_seconds},
                          {"inner_steps", plan.inner_steps},
                          {"fragments", plan.fragments},
                          {"overlap_steps", plan.overlap_steps},
                          {"rounds", plan.rounds},
                          {"warm_up_rounds", plan.warm_up_rounds},
                          {"bits_per_second", plan.bits_per_second},
                          {"later_bits_per_second", plan.later_bits_per_second},
                          {"later_round", plan.later_round},
                          {"delay_seconds", plan.delay_seconds},
                          {"seed", plan.seed},
                          {"transport", plan.transport},
                          {"coordinator", coordinator}}
        .dump();
}

OuterBenchPlan plan_of(const nlohmann::json& text) {
    OuterBenchPlan plan;
    text.at("elements").get_to(plan.elements);
    text.at("codec").get_to(plan.codec);
    text.at("zstd").get_to(plan.zstd);
    text.at("step_seconds").get_to(plan.step_seconds);
    text.at("inner_steps").get_to(plan.inner_steps);
    text.at("fragments").get_to(plan.fragments);
    text.at("overlap_steps").get_to(plan.overlap_steps);
    text.at("rounds").get_to(plan.rounds);
    text.at("warm_up_rounds").get_to(plan.warm_up_rounds);
    text.at("bits_per_second").get_to(plan.bits_per_second);
    text.at("later_bits_per_second").get_to(plan.later_bits_per_second);
    text.at("later_round").get_to(plan.later_round);
    text.at("delay_seconds").get_to(plan.delay_seconds);
    text.at("seed").get_to(plan.seed);
    text.at("transport").get_to(plan.transport);
    return plan;
}

RunNumbers run_numbers(const OuterBenchPlan& plan) {
    RunNumbers numbers;
    numbers.method.codec = plan.codec;
    numbers.method.overlap_steps = plan.overlap_steps;
    numbers.gather = is_gathered(codec_from_name(plan.codec));
    numbers.automatic_inner_steps = plan.inner_steps == 0;
    numbers.inner_steps =
        numbers.automatic_inner_steps ? inner_step_candidates(kEndless).front() : plan.inner_steps;
    numbers.total_steps =
        numbers.automatic_inner_steps ? kEndless : (plan.warm_up_rounds + plan.rounds) * plan.inner_steps;
    return numbers;
}

std::chrono::nanoseconds duration(double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

class OuterBenchSite {
  public:
    OuterBenchSite(Meeting& meeting, const std::string& local_host, const OuterBenchPlan& plan,
                   const std::string& coordinator, BenchCoordinator* hosted);
    OuterBenchResult run();

  private:
    // The inner steps of the open round.
    struct Training {
        RoundPlan plan;
        std::uint64_t work = 0;
        Step done;
        TimePoint next_end{};      // of the step under way
        std::size_t applied = 0;   // fragments
        bool handed_over = false;  // the next fragment's contribution is with the exchange

        const FragmentPlan& next() const { return plan.fragments.at(applied); }
        bool may_step() const { return !handed_over || done < plan.apply_step(next()); }
    };

    void execute(const WorkerOrder& order);
    void start_round(const RoundPlan& plan, std::uint64_t work);
    void end_step();
    void contribute_if_due();
    void apply(const Commit& commit, std::span<const float> mean);

    Meeting& meeting_;
    OuterBenchPlan plan_;
    BenchCoordinator* hosted_;  // null: another site has it
    SystemClock clock_;
    PacedTransport transport_;
    CoordinatorLink link_;
    SiteInfo self_;
    std::vector<std::shared_ptr<std::vector<float>>>
        deltas_;  // by fragment; shared: packets of fp32 are views of them
    std::optional<SiteExchange> exchange_;
    std::optional<Training> training_;
    RoundStopwatch stopwatch_;
    TimePoint first_timed_{};
    std::uint64_t mean_hash_ = 0;
    OuterBenchResult result_;
    bool ended_ = false;
};

OuterBenchSite::OuterBenchSite(Meeting& meeting, const std::string& local_host, const OuterBenchPlan& plan,
                               const std::string& coordinator, BenchCoordinator* hosted)
    : meeting_(meeting),
      plan_(plan),
      hosted_(hosted),
      transport_(open_bench_transport(meeting.place(), plan.transport, {.bind = local_host + ":0"}),
                 {plan.bits_per_second, duration(plan.delay_seconds)}, clock_),
      link_({.address = coordinator}, clock_),
      self_(bench_site_info(meeting.place(), transport_)) {
    const RandomStream stream(plan_.seed, fmt::format("bench outer site {}", meeting_.place()));
    std::uint64_t next = 0;
    for (std::int64_t fragment = 0; fragment < plan.fragments; ++fragment) {
        const std::int64_t begin = plan.elements * fragment / plan.fragments;
        const std::int64_t end = plan.elements * (fragment + 1) / plan.fragments;
        deltas_.push_back(std::make_shared<std::vector<float>>(static_cast<std::size_t>(end - begin)));
        for (float& value : *deltas_.back()) value = static_cast<float>(stream.normal(next++));
    }
}

OuterBenchResult OuterBenchSite::run() {
    std::vector<std::int64_t> fragment_elements;
    for (const auto& delta : deltas_) fragment_elements.push_back(std::ssize(*delta));
    ExchangeOptions options = bench_exchange_options(self_, std::move(fragment_elements), plan_.zstd);
    options.site.progress = kOuterBenchPatience;
    exchange_.emplace(std::move(options), transport_, link_, clock_, Log(self_.name, LogLevel::warning));
    Deadline patience = clock_.after(kOuterBenchPatience);
    while (!ended_) {
        const bool steps = training_ && training_->may_step();
        const TimePoint until = steps ? training_->next_end : clock_.after(Milliseconds(200));
        if (const auto order = exchange_->next_order(until)) {
            execute(*order);
            patience = clock_.after(kOuterBenchPatience);
        } else if (steps && clock_.now() >= training_->next_end) {
            end_step();
        } else if (clock_.now() >= patience) {
            throw CommError(
                fmt::format("[bench] nothing has happened for {} ms", kOuterBenchPatience.count()));
        }
    }
    exchange_.reset();
    result_.sites_hold_equal_bits = all_hold(meeting_, mean_hash_);
    return std::move(result_);
}

void OuterBenchSite::execute(const WorkerOrder& order) {
    if (do_routine_order(*exchange_, order)) return;
    std::visit(
        Overloaded{
            [&](const site_action::StartRound& start) { start_round(start.plan, order.work); },
            [&](const site_action::ApplyCommit& order_to_apply) { apply(order_to_apply.commit, order.mean); },
            [&](const site_action::Stop&) { ended_ = true; },
            [](const auto&) {},
        },
        order.action);
}

void OuterBenchSite::start_round(const RoundPlan& plan, std::uint64_t work) {
    const TimePoint now = clock_.now();
    const std::int64_t round = plan.round.value();
    if (round == plan_.warm_up_rounds) first_timed_ = now;
    if (plan_.later_bits_per_second > 0 && round == plan_.later_round)
        transport_.set_rate({plan_.later_bits_per_second, duration(plan_.delay_seconds)});
    // It takes effect once this round, the last one that counts, is committed.
    if (hosted_ != nullptr && round + 1 == plan_.warm_up_rounds + plan_.rounds) hosted_->request_stop();
    stopwatch_.begin(plan.round, now);
    training_ = Training{plan, work, plan.first_step, now + duration(plan_.step_seconds)};
}

void OuterBenchSite::end_step() {
    training_->done = training_->done.next();
    stopwatch_.step(plan_.step_seconds);
    exchange_->tell(site_event::StepDone{training_->done});
    // From the planned end, not from now: a late wake-up is no longer step.
    training_->next_end += duration(plan_.step_seconds);
    contribute_if_due();
}

void OuterBenchSite::contribute_if_due() {
    if (training_->handed_over || training_->done < training_->next().start_step) return;
    const FragmentId fragment = training_->next().id;
    const auto& delta = deltas_.at(static_cast<std::size_t>(fragment.value()));
    exchange_->contribute({training_->plan.round, fragment, training_->work, delta, {}, {}});
    training_->handed_over = true;
}

void OuterBenchSite::apply(const Commit& commit, std::span<const float> mean) {
    const TimePoint now = clock_.now();
    const std::int64_t round = commit.round.value();
    if (round + 1 == plan_.warm_up_rounds + plan_.rounds)
        mean_hash_ = 31 * mean_hash_ + xxh3_64(std::as_bytes(mean));
    if (!commit.ends_round()) {
        training_->handed_over = false;
        ++training_->applied;
        training_->next_end = now + duration(plan_.step_seconds);  // the step after it begins with it
        exchange_->tell(site_event::CommitApplied{commit.round, commit.fragment});
        return;
    }
    training_.reset();
    const auto cost = stopwatch_.end(exchange_->last_traffic(), now);
    const bool timed = round >= plan_.warm_up_rounds && round < plan_.warm_up_rounds + plan_.rounds;
    if (cost && timed) {
        result_.rounds.push_back(*cost);
        result_.wall_seconds = seconds(now - first_timed_);
    }
    exchange_->tell(site_event::CommitApplied{commit.round, commit.fragment});
    if (cost) exchange_->tell(site_event::RoundMeasured{*cost});
}

}  // namespace

double OuterBenchResult::compute_utilization() const {
    double in_steps = 0;
    for (const RoundCost& round : rounds) in_steps += round.step_seconds;
    return wall_seconds > 0 ? in_steps / wall_seconds : 0;
}

OuterBenchResult run_outer_bench_site(Meeting& meeting, const std::string& local_host,
                                      const OuterBenchPlan& plan) {
    std::unique_ptr<BenchCoordinator> coordinator;
    if (meeting.place() == 0)
        coordinator = std::make_unique<BenchCoordinator>(local_host, meeting.members(), run_numbers(plan));
    const nlohmann::json agreed = nlohmann::json::parse(
        meeting.announce(coordinator ? to_text(plan, coordinator->address()) : std::string()));
    OuterBenchSite site(meeting, local_host, plan_of(agreed), agreed.at("coordinator"), coordinator.get());
    return site.run();
}

}  // namespace atl::cli
