#include "cli/bench_site.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "cli/bench_coordinator.h"
#include "cli/bench_member.h"
#include "codec/codec.h"
#include "comm/island/gloo_all_reduce.h"
#include "coordinator/coordinator_link.h"
#include "core/error.h"
#include "core/random.h"
#include "core/statistics.h"
#include "metrics/progress.h"
#include "rounds/overloaded.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kSitePatience{120'000};
constexpr std::int64_t kCheckedElements = 1 << 20;  // the error is that of a sample of at most so many

double process_cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

RandomStream delta_stream(const BenchPlan& plan, int site) {
    return RandomStream(plan.seed, fmt::format("bench exchange site {}", site));
}

std::string to_text(const BenchPlan& plan, const std::string& coordinator) {
    return nlohmann::json{{"elements", plan.elements},
                          {"codec", plan.codec},
                          {"zstd", plan.zstd},
                          {"rounds", plan.rounds},
                          {"warm_up_rounds", plan.warm_up_rounds},
                          {"idle_ms", plan.idle_ms},
                          {"seed", plan.seed},
                          {"compare_gloo", plan.compare_gloo},
                          {"transport", plan.transport},
                          {"connections", plan.connections},
                          {"shares_memory", plan.shares_memory},
                          {"coordinator", coordinator}}
        .dump();
}

BenchPlan plan_of(const nlohmann::json& text) {
    BenchPlan plan;
    text.at("elements").get_to(plan.elements);
    text.at("codec").get_to(plan.codec);
    text.at("zstd").get_to(plan.zstd);
    text.at("rounds").get_to(plan.rounds);
    text.at("warm_up_rounds").get_to(plan.warm_up_rounds);
    text.at("idle_ms").get_to(plan.idle_ms);
    text.at("seed").get_to(plan.seed);
    text.at("compare_gloo").get_to(plan.compare_gloo);
    text.at("transport").get_to(plan.transport);
    text.at("connections").get_to(plan.connections);
    text.at("shares_memory").get_to(plan.shares_memory);
    return plan;
}

// Gloo's ranks find each other through the meeting.
class MeetingRendezvous final : public Rendezvous {
  public:
    explicit MeetingRendezvous(Meeting& meeting) : meeting_(meeting) {}
    std::vector<std::string> exchange(const std::string&, std::string_view mine, Milliseconds) override {
        return meeting_.gather_all(std::string(mine));
    }

  private:
    Meeting& meeting_;
};

class BenchSite {
  public:
    BenchSite(Meeting& meeting, const std::string& local_host, const BenchPlan& plan,
              const std::string& coordinator);
    BenchResult run();

  private:
    void execute(SiteExchange& exchange, const WorkerOrder& order);
    void start_round(SiteExchange& exchange, const RoundPlan& plan, std::uint64_t work);
    void take_mean(SiteExchange& exchange, const WorkerOrder& order, const Commit& commit);
    void count(const RoundTraffic& traffic);
    void run_gloo();
    void wait_for(TimePoint moment) const { std::this_thread::sleep_until(moment); }
    double relative_error(std::span<const float> mean) const;

    Meeting& meeting_;
    std::string local_host_;
    BenchPlan plan_;
    SystemClock clock_;
    std::unique_ptr<SiteTransport> transport_;
    CoordinatorLink link_;
    SiteInfo self_;
    std::shared_ptr<std::vector<float>> delta_;  // shared: packets of fp32 are views of it
    std::vector<float> gloo_sum_;
    std::unique_ptr<GlooAllReduce> gloo_;
    TimePoint begin_{};
    double cpu_begin_ = 0;
    std::uint64_t mean_hash_ = 0;
    std::vector<RoundTraffic> traffic_;
    BenchResult result_;
    bool ended_ = false;
};

BenchSite::BenchSite(Meeting& meeting, const std::string& local_host, const BenchPlan& plan,
                     const std::string& coordinator)
    : meeting_(meeting),
      local_host_(local_host),
      plan_(plan),
      transport_(open_bench_transport(meeting.place(), plan.transport,
                                      {.bind = local_host + ":0",
                                       .connections = plan.connections,
                                       .shares_memory = plan.shares_memory})),
      link_({.address = coordinator}, clock_),
      self_(bench_site_info(meeting.place(), *transport_)),
      delta_(std::make_shared<std::vector<float>>(static_cast<std::size_t>(plan.elements))) {
    const RandomStream stream = delta_stream(plan_, meeting_.place());
    for (std::size_t i = 0; i < delta_->size(); ++i) (*delta_)[i] = static_cast<float>(stream.normal(i));
    if (!plan_.compare_gloo) return;
    MeetingRendezvous rendezvous(meeting_);
    gloo_ = std::make_unique<GlooAllReduce>(GlooOptions{.group = "bench",
                                                        .rank = Rank(meeting_.place()),
                                                        .size = meeting_.members(),
                                                        .address = local_host_,
                                                        .connect_timeout = kSitePatience},
                                            rendezvous);
    gloo_sum_.resize(delta_->size());
}

BenchResult BenchSite::run() {
    SiteExchange exchange(bench_exchange_options(self_, {plan_.elements}, plan_.zstd), *transport_, link_,
                          clock_, Log(self_.name, LogLevel::warning));
    Deadline patience = clock_.after(kSitePatience);
    while (!ended_) {
        if (const auto order = exchange.next_order(clock_.after(Milliseconds(200)))) {
            execute(exchange, *order);
            patience = clock_.after(kSitePatience);
        } else if (clock_.now() >= patience) {
            throw CommError(fmt::format("[bench] nothing has happened for {} ms", kSitePatience.count()));
        }
    }
    result_.sites_hold_equal_bits = all_hold(meeting_, mean_hash_);
    result_.peak_rss_bytes = peak_rss_bytes();
    return std::move(result_);
}

void BenchSite::execute(SiteExchange& exchange, const WorkerOrder& order) {
    if (do_routine_order(exchange, order)) return;
    std::visit(
        Overloaded{
            [&](const site_action::StartRound& start) { start_round(exchange, start.plan, order.work); },
            [&](const site_action::ApplyCommit& apply) { take_mean(exchange, order, apply.commit); },
            [&](const site_action::Stop&) { ended_ = true; },
            [](const auto&) {},
        },
        order.action);
}

void BenchSite::start_round(SiteExchange& exchange, const RoundPlan& plan, std::uint64_t work) {
    exchange.tell(site_event::StepDone{plan.last_step()});
    const bool timed = plan.round.value() >= plan_.warm_up_rounds;
    begin_ = meeting_.agree_on_moment(Milliseconds(timed ? plan_.idle_ms : 0));
    wait_for(begin_);
    cpu_begin_ = process_cpu_seconds();
    exchange.contribute({plan.round, FragmentId(0), work, delta_, {}});
}

void BenchSite::take_mean(SiteExchange& exchange, const WorkerOrder& order, const Commit& commit) {
    const double duration = seconds(clock_.now() - begin_);
    const std::span<const float> mean = order.mean;
    if (commit.round.value() >= plan_.warm_up_rounds) {
        result_.seconds.push_back(duration);
        result_.cpu_seconds.push_back(process_cpu_seconds() - cpu_begin_);
        count(exchange.last_traffic());
    }
    if (commit.round.value() + 1 == plan_.warm_up_rounds + plan_.rounds) {
        mean_hash_ = xxh3_64(std::as_bytes(mean));
        if (meeting_.place() == 0) result_.relative_error = relative_error(mean);
    }
    if (gloo_) run_gloo();
    exchange.tell(site_event::CommitApplied{commit.round, commit.fragment});
}

void BenchSite::count(const RoundTraffic& traffic) {
    traffic_.push_back(traffic);
    const auto middle = [&](std::int64_t PeerCounters::*bytes) {
        std::vector<double> sums;
        for (const RoundTraffic& round : traffic_) {
            std::int64_t sum = 0;
            for (const PeerCounters& peer : round.peers) sum += peer.*bytes;
            sums.push_back(static_cast<double>(sum));
        }
        return static_cast<std::int64_t>(median(sums));
    };
    result_.shared_memory = std::ranges::all_of(traffic.peers, &PeerCounters::shares_memory);
    result_.payload_bytes_sent = middle(&PeerCounters::payload_bytes_sent);
    result_.payload_bytes_received = middle(&PeerCounters::payload_bytes_received);
    result_.wire_bytes_sent = middle(&PeerCounters::wire_bytes_sent);
    result_.wire_bytes_received = middle(&PeerCounters::wire_bytes_received);
}

// The first run, in the warm-up, makes the connections and touches the pages.
void BenchSite::run_gloo() {
    const TimePoint begin = meeting_.agree_on_moment(Milliseconds(0));
    wait_for(begin);
    const double cpu_begin = process_cpu_seconds();
    gloo_->run(*delta_, gloo_sum_, kSitePatience);
    if (result_.seconds.empty()) return;
    result_.gloo_seconds.push_back(seconds(clock_.now() - begin));
    result_.gloo_cpu_seconds.push_back(process_cpu_seconds() - cpu_begin);
}

double BenchSite::relative_error(std::span<const float> mean) const {
    std::vector<RandomStream> streams;
    for (int site = 0; site < meeting_.members(); ++site) streams.push_back(delta_stream(plan_, site));
    const std::size_t stride = std::max<std::size_t>(1, mean.size() / kCheckedElements);
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < mean.size(); i += stride) {
        double exact = 0;
        for (const RandomStream& stream : streams) exact += static_cast<float>(stream.normal(i));
        exact /= meeting_.members();
        error += std::pow(mean[i] - exact, 2);
        power += std::pow(exact, 2);
    }
    return power > 0 ? std::sqrt(error / power) : 0;
}

RunNumbers run_numbers(const BenchPlan& plan) {
    RunNumbers numbers;
    numbers.method.codec = plan.codec;
    numbers.gather = is_gathered(codec_from_name(plan.codec));
    numbers.equal_shares = plan.equal_shares;
    numbers.inner_steps = 1;
    numbers.total_steps = plan.warm_up_rounds + plan.rounds;
    return numbers;
}

}  // namespace

BenchResult run_bench_site(Meeting& meeting, const std::string& local_host, const BenchPlan& plan) {
    std::unique_ptr<BenchCoordinator> coordinator;
    if (meeting.place() == 0)
        coordinator = std::make_unique<BenchCoordinator>(local_host, meeting.members(), run_numbers(plan));
    const nlohmann::json agreed = nlohmann::json::parse(
        meeting.announce(coordinator ? to_text(plan, coordinator->address()) : std::string()));
    BenchSite site(meeting, local_host, plan_of(agreed), agreed.at("coordinator"));
    return site.run();
}

}  // namespace atl::cli
