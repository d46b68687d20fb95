// Sites with real threads and real transports, the pure coordinator on a thread of its own: rounds commit, all sites
// hold the same bits, and a site that goes in the middle does not stop the others.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "comm/site/inproc.h"
#include "comm/site/zmq_transport.h"
#include "core/random.h"
#include "exchange/site_exchange.h"
#include "rounds/coordinator_state.h"
#include "rounds/overloaded.h"
#include "support/site_transport.h"

namespace atl {
namespace {

constexpr std::int64_t kElements = 200'000;
constexpr std::int64_t kRounds = 4;

// The coordinator of a run, and the links to it, guarded by one lock.
class Coordinator {
  public:
    explicit Coordinator(int sites) : state_(options(sites), {}) {
        state_.handle(coordinator_event::Started{}, clock_.now());
        thread_ = std::jthread([this](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                std::unique_lock lock(mutex_);
                state_.handle(coordinator_event::Tick{}, clock_.now());
                changed_.wait_for(lock, Milliseconds(5));
            }
        });
    }
    void report(const Report& report) {
        const std::scoped_lock lock(mutex_);
        if (gone_.contains(report.site.id)) return;
        known_[report.site.id] = report.site;
        state_.handle(coordinator_event::ReportReceived{report}, clock_.now());
    }
    // A view newer than `seen`.
    std::optional<View> view(SiteId site, std::int64_t& seen) {
        const std::scoped_lock lock(mutex_);
        if (!known_.contains(site) || seen == state_.version()) return {};
        seen = state_.version();
        return state_.view_for(known_[site], "test");
    }
    void disconnect(SiteId site) {
        const std::scoped_lock lock(mutex_);
        gone_.insert(site);
        state_.handle(coordinator_event::Disconnected{site, known_[site].incarnation}, clock_.now());
    }

  private:
    static CoordinatorOptions options(int sites) {
        CoordinatorOptions options;
        options.run_id = "test";
        for (int site = 0; site < sites; ++site) options.site_names.push_back(fmt::format("site{}", site));
        options.numbers.inner_steps = 1;
        options.timeouts.reconnect = Milliseconds(0);
        options.numbers.total_steps = kRounds;
        options.numbers.chunk_elements = 16 * 1024;
        return options;
    }

    SystemClock clock_;
    std::mutex mutex_;
    std::condition_variable changed_;
    CoordinatorState state_;
    std::map<SiteId, SiteInfo> known_;
    std::set<SiteId> gone_;
    std::jthread thread_;
};

class Link final : public ControlLink {
  public:
    Link(Coordinator& coordinator, SiteId self) : coordinator_(coordinator), self_(self) {}
    void send(const Report& report) override { coordinator_.report(report); }
    std::optional<View> receive() override { return coordinator_.view(self_, seen_); }

  private:
    Coordinator& coordinator_;
    SiteId self_;
    std::int64_t seen_ = -1;
};

std::vector<float> delta_of(int site, Round round) {
    const RandomStream random(9, fmt::format("delta {} {}", site, round));
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.uniform(i) - 0.5);
    return values;
}

using MakeTransport = std::function<std::unique_ptr<SiteTransport>(const TransportOptions&)>;

// One site's life: the worker's loop as a worker has it. Dies without a word in round `dies_in`, if that is set.
class Site {
  public:
    Site(Coordinator& coordinator, int number, const MakeTransport& make, std::optional<Round> dies_in)
        : coordinator_(coordinator),
          number_(number),
          dies_in_(dies_in),
          transport_(make(test::transport_options(number, 10 + static_cast<std::uint64_t>(number)))),
          link_(coordinator, SiteId(number)),
          thread_([this] { live(); }) {}

    void join() { thread_.join(); }
    std::map<Round, std::vector<float>> means;
    std::map<Round, Commit> commits;
    bool ended = false;

  private:
    void live() {
        ExchangeOptions options;
        options.site.run_id = "test";
        options.site.self = {SiteId(number_), fmt::format("site{}", number_),
                             Incarnation(10 + static_cast<std::uint64_t>(number_)), transport_->address()};
        options.site.hello.blocks_per_epoch = 1000;
        options.site.hello.fragment_elements = {kElements};
        SystemClock clock;
        {
            SiteExchange exchange(std::move(options), *transport_, link_, clock,
                                  Log("test", LogLevel::error));
            const Deadline end = clock.after(Milliseconds(60'000));
            while (!ended && !dead_ && clock.now() < end) {
                if (const auto order = exchange.next_order(clock.after(Milliseconds(100))))
                    work(exchange, *order);
            }
        }
        transport_.reset();
        if (dead_) coordinator_.disconnect(SiteId(number_));
    }

    void work(SiteExchange& exchange, const WorkerOrder& order) {
        std::visit(Overloaded{
                       [&](const site_action::LoadState& load) {
                           exchange.tell(site_event::StateLoaded{
                               load.from.round, load.from.step, load.from.state_hash, {}});
                       },
                       [&](const site_action::StartRound& start) {
                           exchange.tell(site_event::StepDone{start.plan.last_step()});
                           const auto buffer = exchange.buffer(kElements);
                           *buffer = delta_of(number_, start.plan.round);
                           dead_ = start.plan.round == dies_in_;
                           exchange.contribute({start.plan.round, FragmentId(0), order.work, buffer, {}});
                       },
                       [&](const site_action::ApplyCommit& apply) {
                           const Commit& commit = apply.commit;
                           const auto mean = order.mean;
                           means[commit.round].assign(mean.begin(), mean.end());
                           commits[commit.round] = commit;
                           exchange.tell(site_event::CommitApplied{commit.round, commit.fragment});
                       },
                       [&](const site_action::WriteCheckpoint& write) {
                           exchange.tell(site_event::CheckpointWritten{write.checkpoint.step});
                       },
                       [&](const site_action::Evaluate& part) {
                           exchange.tell(site_event::Evaluated{{.round = part.round}});
                       },
                       [&](const site_action::Stop&) { ended = true; },
                       [](const auto&) {},
                   },
                   order.action);
    }

    Coordinator& coordinator_;
    int number_;
    std::optional<Round> dies_in_;
    bool dead_ = false;
    std::unique_ptr<SiteTransport> transport_;
    Link link_;
    std::jthread thread_;
};

struct Case {
    std::string transport;
    int sites;
    bool one_dies;
};

class SiteExchangeTest : public testing::TestWithParam<Case> {};

TEST_P(SiteExchangeTest, every_round_commits_with_the_same_bits_on_all_sites_that_live) {
    const auto [kind, count, one_dies] = GetParam();
    InprocNetwork network;
    const MakeTransport make = [&](const TransportOptions& options) {
        return kind == "zmq" ? make_zmq_transport(options, {}) : network.join(options);
    };
    Coordinator coordinator(count);
    std::vector<std::unique_ptr<Site>> sites;
    for (int site = 0; site < count; ++site) {
        const bool dies = one_dies && site == count - 1;
        sites.push_back(
            std::make_unique<Site>(coordinator, site, make, dies ? std::optional(Round(1)) : std::nullopt));
    }
    for (auto& site : sites) site->join();
    const int living = one_dies ? count - 1 : count;
    for (int site = 0; site < living; ++site) {
        EXPECT_TRUE(sites[static_cast<std::size_t>(site)]->ended);
        for (std::int64_t round = 0; round < kRounds; ++round) {
            const auto& means = sites[static_cast<std::size_t>(site)]->means;
            ASSERT_TRUE(means.contains(Round(round))) << "site " << site << " round " << round;
            EXPECT_EQ(means.at(Round(round)), sites[0]->means.at(Round(round)));
        }
    }
    const Commit& last = sites[0]->commits.at(Round(kRounds - 1));
    EXPECT_EQ(last.contributors.size(), static_cast<std::size_t>(living));
}

INSTANTIATE_TEST_SUITE_P(All, SiteExchangeTest,
                         testing::Values(Case{"inproc", 2, false}, Case{"inproc", 3, true},
                                         Case{"zmq", 2, false}, Case{"zmq", 3, false}, Case{"zmq", 3, true}),
                         [](const auto& info) {
                             return fmt::format("{}_{}_sites{}", info.param.transport, info.param.sites,
                                                info.param.one_dies ? "_one_dies" : "");
                         });

}  // namespace
}  // namespace atl
