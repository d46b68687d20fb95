// The coordinator as a process with real sockets and a real database: a run of two sites to its end, a coordinator
// killed in the middle, a site that vanishes, a port that is taken, a second coordinator. Loopback only.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "config/load_config.h"
#include "coordinator/client.h"
#include "coordinator/run_options.h"
#include "coordinator/server.h"
#include "core/child_process.h"
#include "core/error.h"
#include "core/file_system.h"
#include "rounds/overloaded.h"
#include "rounds/site_state.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

constexpr const char* kConfig = R"(
[run]
name = "pair"
[train]
steps = 12
[outer]
inner_steps = 3
[exchange]
min_sites = 1
[[site]]
name = "alpha"
[[site]]
name = "beta"
[timeouts]
heartbeat_ms = 50
)";
constexpr Milliseconds kPatience{60'000};

// Two sites in one thread: real control connections, packets handed over by hand, no numbers.
class Pair {
  public:
    Pair(const RunConfig& config, const std::filesystem::path& run_directory) {
        for (int id = 0; id < 2; ++id) {
            SiteOptions options;
            options.run_id = config.run.name;
            options.self = {SiteId(id), config.sites[std::size_t(id)].name,
                            Incarnation(std::uint64_t(100 + id)), "none"};
            options.hello = {shared_settings(config), 1000, {256}, {}};
            const ControlClientOptions client{"", run_directory / "coordinator.address", Milliseconds(100)};
            sites_.push_back(
                {std::make_unique<SiteState>(options), std::make_unique<ControlClient>(client, clock_)});
        }
    }

    // Until `enough` says so; fails the test after kPatience.
    void run(const std::function<bool()>& enough) {
        const Deadline deadline = clock_.after(kPatience);
        TimePoint heartbeat{};
        while (!enough()) {
            ASSERT_LT(clock_.now(), deadline) << "the sites wait for ever";
            for (std::size_t i = 0; i < sites_.size(); ++i) {
                if (!sites_[i].client) continue;
                const auto view = sites_[i].client->receive(clock_.after(Milliseconds(1)));
                if (view) feed(i, site_event::ViewReceived{*view});
                feed(i, site_event::Tick{});
                evaluate(i);
                if (sites_[i].client && clock_.now() - heartbeat > Milliseconds(50)) report(i);
            }
            if (clock_.now() - heartbeat > Milliseconds(50)) heartbeat = clock_.now();
        }
    }
    void vanish(std::size_t site) { sites_[site].client.reset(); }
    const SiteState& state(std::size_t site) const { return *sites_[site].state; }
    std::optional<int> exit_code(std::size_t site) const { return sites_[site].exit_code; }
    bool all_stopped() const { return sites_[0].exit_code && sites_[1].exit_code; }
    const SystemClock& clock() const { return clock_; }
    std::int64_t evaluated_tokens(std::size_t site) const { return sites_[site].evaluated_tokens; }
    bool hold_back = false;  // no contributions: rounds stay open
    Milliseconds evaluation_time{0};

  private:
    struct Site {
        std::unique_ptr<SiteState> state;
        std::unique_ptr<ControlClient> client;
        std::optional<int> exit_code;
        std::map<std::pair<Round, SiteId>, PacketDigest> packets;
        std::optional<std::pair<Round, TimePoint>> evaluating;  // until then
        std::int64_t evaluated_tokens = 0;
    };

    void report(std::size_t site) {
        if (sites_[site].client) sites_[site].client->send(sites_[site].state->report());
    }

    void feed(std::size_t site, const SiteEvent& event) {
        if (!sites_[site].client) return;
        for (const SiteDecision& decision : sites_[site].state->handle(event, clock_.now()))
            act(site, decision.action);
    }

    void act(std::size_t site, const SiteAction& action) {
        std::visit(
            Overloaded{
                [&](const site_action::LoadState&) {
                    feed(site, site_event::StateLoaded{Round(0), Step(0), Hash128{1, 1}, {}});
                },
                [&](const site_action::StartRound& start) { train(site, start.plan); },
                [&](const site_action::SendPacket& send) {
                    for (const SiteId to : send.to) {
                        const SiteId sender{std::int32_t(site)};
                        feed(std::size_t(to.value()),
                             site_event::PacketArrived{send.key, sender, digest(send.key)});
                    }
                },
                [&](const site_action::RequestPackets& request) {
                    const SiteId from{std::int32_t(site)};
                    feed(std::size_t(request.from.value()), site_event::PacketsRequested{from, request.keys});
                },
                [&](const site_action::ApplyCommit& commit) {
                    feed(site, site_event::CommitApplied{commit.commit.round, commit.commit.fragment});
                },
                [&](const site_action::WriteCheckpoint& write) {
                    feed(site, site_event::CheckpointWritten{write.checkpoint.step});
                },
                [&](const site_action::Evaluate& part) {
                    sites_[site].evaluating = {part.round, clock_.after(evaluation_time)};
                },
                [&](const site_action::TakeEvaluation& all) {
                    sites_[site].evaluated_tokens = all.total.tokens;
                },
                [&](const site_action::ReportNow&) { report(site); },
                [&](const site_action::Stop& stop) {
                    sites_[site].exit_code = stop.exit_code;
                    sites_[site].client.reset();
                },
                [](const auto&) {},
            },
            action);
    }

    // One token for each site, window by window.
    void evaluate(std::size_t site) {
        if (!sites_[site].evaluating) return;
        const auto [round, until] = *sites_[site].evaluating;
        if (clock_.now() < until) return feed(site, site_event::WindowsEvaluated{});
        sites_[site].evaluating.reset();
        feed(site, site_event::Evaluated{{.round = round, .loss_sum = 1, .tokens = 1}});
    }

    static PacketDigest digest(const PacketKey& key) {
        return {std::uint64_t(key.round.value()), std::uint64_t(key.origin.value() * 1000 + key.chunk)};
    }

    void train(std::size_t site, const RoundPlan& plan) {
        for (Step step = plan.first_step.next(); step <= plan.last_step(); step = step.next()) {
            feed(site, site_event::StepDone{step});
        }
        if (hold_back) return;
        const FragmentPlan& fragment = plan.fragments.front();
        feed(site, site_event::ContributionDeclared{fragment.id, {true, {1.0}}});
        for (std::int64_t chunk = 0; chunk < fragment.chunks(); ++chunk) {
            const PacketKey key{Leg::contribution,          plan.round, fragment.id, Attempt(0),
                                SiteId(std::int32_t(site)), chunk};
            feed(site, site_event::ContributionEncoded{fragment.id, chunk, digest(key)});
        }
    }

    SystemClock clock_;
    std::vector<Site> sites_;
};

// A coordinator on a thread of this process, until its run ends or the test has failed.
class RunningServer {
  public:
    explicit RunningServer(CoordinatorServer& server)
        : server_(server), thread_([this] { exit_code_ = server_.run(); }) {}
    ~RunningServer() {
        if (thread_.joinable()) server_.request_stop();  // it may wait for what does not come
    }
    int join() {
        thread_.join();
        return exit_code_;
    }

  private:
    CoordinatorServer& server_;
    int exit_code_ = -1;
    std::jthread thread_;
};

class Coordinator : public ::testing::Test {
  protected:
    void SetUp() override {
        file_ = directory_.path() / "pair.toml";
        files_->write_text_atomically(file_, kConfig);
        config_ = load_config(*files_, {.file = file_, .overrides = {}}).config;
    }
    void TearDown() override {
        const auto output = directory_.path() / "coordinator.out";
        if (HasFailure() && files_->exists(output)) std::printf("%s\n", files_->read_text(output).c_str());
    }
    ServerOptions server_options() const {
        ServerOptions options;
        options.protocol = coordinator_options(config_, std::nullopt);
        options.run_directory = directory_.path();
        return options;
    }
    ChildProcess start_process() const {
        ChildOptions options;
        options.command = {std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll",
                           "coordinator",
                           "--config",
                           file_.string(),
                           "--run-dir",
                           directory_.path().string(),
                           "--address",
                           "127.0.0.1:0"};
        options.output = directory_.path() / "coordinator.out";
        return ChildProcess(options);
    }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
    std::filesystem::path file_;
    RunConfig config_;
    SystemClock clock_;
    Log log_{"coordinator", LogLevel::error};
};

TEST_F(Coordinator, brings_two_sites_to_the_end_of_their_run) {
    ServerOptions options = server_options();
    CoordinatorServer server(options, clock_, log_);
    RunningServer running(server);
    Pair pair(config_, directory_.path());
    std::string status;
    pair.run([&] {
        if (status.empty() && pair.state(0).round() > Round(1)) {
            status = fetch_status(server.address(), Milliseconds(5'000));
        }
        return pair.all_stopped();
    });
    ASSERT_TRUE(pair.all_stopped());
    EXPECT_EQ(running.join(), 0);
    EXPECT_EQ(pair.exit_code(0), 0);
    EXPECT_EQ(pair.exit_code(1), 0);
    EXPECT_EQ(pair.state(0).round(), Round(4));
    EXPECT_NE(status.find("\"site\":\"alpha\""), std::string::npos) << status;
}

TEST_F(Coordinator, stays_for_the_last_evaluation_however_long_it_takes) {
    ServerOptions options = server_options();
    options.farewell = Milliseconds(50);
    CoordinatorServer server(options, clock_, log_);
    const RunningServer running(server);
    Pair pair(config_, directory_.path());
    pair.evaluation_time = 20 * options.farewell;
    pair.run([&] { return pair.all_stopped(); });
    for (const std::size_t site : {0, 1}) {
        EXPECT_EQ(pair.exit_code(site), 0);
        EXPECT_EQ(pair.evaluated_tokens(site), 2) << "both shares, summed by the coordinator";
    }
}

TEST_F(Coordinator, killed_in_a_round_comes_back_with_a_higher_term_and_the_run_goes_on) {
    std::optional<ChildProcess> process = start_process();
    Pair pair(config_, directory_.path());
    pair.hold_back = true;
    pair.run(
        [&] { return pair.state(0).phase() == Phase::training && pair.state(1).phase() == Phase::training; });
    const View before = pair.state(0).view();
    process->send_signal(SIGKILL);
    ASSERT_TRUE(process->wait_for(Milliseconds(10'000)));
    process = start_process();
    pair.run(
        [&] { return pair.state(0).view().term > before.term && pair.state(1).view().term > before.term; });
    EXPECT_EQ(pair.state(0).view().plan, before.plan) << "the plan is the one that was stored";
    EXPECT_EQ(pair.state(0).view().attempts, before.attempts);
    EXPECT_EQ(pair.state(0).phase(), Phase::training) << "the sites have gone on working";
}

TEST_F(Coordinator, killed_between_rounds_again_and_again_does_not_stop_the_run) {
    std::optional<ChildProcess> process = start_process();
    Pair pair(config_, directory_.path());
    for (int round = 1; round <= 3; ++round) {
        pair.run([&] { return pair.state(0).round() >= Round(round); });
        process->send_signal(SIGKILL);
        ASSERT_TRUE(process->wait_for(Milliseconds(10'000)));
        process = start_process();
    }
    pair.run([&] { return pair.all_stopped(); });
    EXPECT_EQ(pair.exit_code(0), 0);
    EXPECT_EQ(pair.exit_code(1), 0);
    const auto ended = process->wait_for(kPatience);
    ASSERT_TRUE(ended);
    EXPECT_TRUE(ended->ok()) << to_string(*ended);
}

TEST_F(Coordinator, a_changed_setting_outlives_the_coordinator_and_is_in_every_later_plan) {
    std::optional<ChildProcess> process = start_process();
    Pair pair(config_, directory_.path());
    pair.run([&] { return pair.state(0).round() >= Round(1) && pair.state(1).round() >= Round(1); });
    const std::string address = files_->read_text(directory_.path() / "coordinator.address");
    const std::string answer = request_changes(address, {"outer.inner_steps=2"}, kPatience);
    process->send_signal(SIGKILL);
    ASSERT_TRUE(process->wait_for(Milliseconds(10'000)));
    EXPECT_NE(answer.find("\"accepted\":true"), std::string::npos) << answer;
    process = start_process();
    std::map<Round, RoundPlan> plans;
    pair.run([&] {
        if (const auto& plan = pair.state(0).view().plan) plans[plan->round] = *plan;
        return pair.all_stopped();
    });
    ASSERT_FALSE(plans.empty());
    EXPECT_EQ(plans.rbegin()->second.last_step(), Step(12));
    const auto first =
        std::ranges::find_if(plans, [](const auto& entry) { return entry.second.inner_steps() == 2; });
    ASSERT_NE(first, plans.end());
    // As told before the coordinator died, or as it read it again.
    EXPECT_NE(first->second.reason.find("outer.inner_steps"), std::string::npos) << first->second.reason;
    for (auto later = first; later != plans.end(); ++later) EXPECT_LE(later->second.inner_steps(), 2);
}

TEST_F(Coordinator, a_config_that_no_longer_fits_an_earlier_change_is_refused_with_the_reason) {
    std::optional<ChildProcess> process = start_process();
    Pair pair(config_, directory_.path());
    pair.run([&] { return pair.state(0).round() >= Round(1); });
    request_changes(files_->read_text(directory_.path() / "coordinator.address"), {"outer.inner_steps=2"}, kPatience);
    process->send_signal(SIGKILL);
    ASSERT_TRUE(process->wait_for(Milliseconds(10'000)));
    std::string changed = kConfig;
    changed.replace(changed.find("inner_steps = 3"), 15, "inner_steps = 6\nfragments = 3\noverlap_steps = 1");
    files_->write_text_atomically(file_, changed);
    process = start_process();
    const auto ended = process->wait_for(kPatience);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->code, 2);
    const std::string report = files_->read_text(directory_.path() / "coordinator.out");
    EXPECT_NE(report.find("changed by `atoll set` in an earlier part of the run"), std::string::npos) << report;
}

TEST_F(Coordinator, refuses_a_wrong_setting_and_goes_on_as_before) {
    ServerOptions options = server_options();
    options.config = config_;
    CoordinatorServer server(options, clock_, log_);
    const RunningServer running(server);
    const std::string answer =
        request_changes(server.address(), {"outer.inner_steps=0", "model.layers=3"}, kPatience);
    EXPECT_NE(answer.find("\"accepted\":false"), std::string::npos) << answer;
    EXPECT_NE(answer.find("outside its range"), std::string::npos) << answer;
    EXPECT_NE(answer.find("model.layers=3: can't be changed"), std::string::npos) << answer;
    Pair pair(config_, directory_.path());
    pair.run([&] { return pair.all_stopped(); });
    EXPECT_EQ(pair.state(0).round(), Round(4)) << "rounds of 3 steps, as the configuration says";
}

TEST_F(Coordinator, names_a_site_that_vanishes_and_the_other_goes_on_alone) {
    CoordinatorServer server(server_options(), clock_, log_);
    const RunningServer running(server);
    Pair pair(config_, directory_.path());
    pair.run([&] { return pair.state(0).round() >= Round(1); });
    const TimePoint gone = clock_.now();
    pair.vanish(1);
    pair.run([&] {
        const SiteView* beta = pair.state(0).view().find(SiteId(1));
        return beta != nullptr && is_gone(beta->standing);
    });
    std::printf("a vanished site is declared lost after %.3f s\n", seconds(clock_.now() - gone));
    pair.run([&] { return pair.exit_code(0).has_value(); });
    EXPECT_EQ(pair.exit_code(0), 0);
    EXPECT_EQ(pair.state(0).round(), Round(4));
}

TEST_F(Coordinator, a_site_with_another_configuration_is_refused_and_told_both_values) {
    CoordinatorServer server(server_options(), clock_, log_);
    const RunningServer running(server);
    RunConfig other = config_;
    other.outer.inner_steps = 4;
    Pair pair(other, directory_.path());
    pair.run([&] { return pair.all_stopped(); });
    EXPECT_EQ(pair.exit_code(0), 2);
    EXPECT_EQ(pair.state(0).view().refusal,
              "outer.inner_steps differs: the coordinator has 3, site \"alpha\" has 4");
}

TEST_F(Coordinator, refuses_to_start_beside_another_one_of_the_same_run) {
    CoordinatorServer server(server_options(), clock_, log_);
    try {
        CoordinatorServer second(server_options(), clock_, log_);
        FAIL() << "two coordinators of one run";
    } catch (const StorageError& error) {
        EXPECT_NE(std::string(error.what()).find("another coordinator of this run is alive"),
                  std::string::npos)
            << error.what();
    }
}

TEST_F(Coordinator, says_which_port_is_taken) {
    CoordinatorServer server(server_options(), clock_, log_);
    test::TemporaryDirectory other;
    ServerOptions options = server_options();
    options.run_directory = other.path();
    options.address = server.address();
    try {
        CoordinatorServer second(options, clock_, log_);
        FAIL() << "two listeners on one port";
    } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(server.address()), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("in use"), std::string::npos) << error.what();
    }
}

TEST_F(Coordinator, does_not_touch_the_database_of_another_run) {
    { CoordinatorServer server(server_options(), clock_, log_); }
    ServerOptions options = server_options();
    options.protocol.run_id = "other";
    EXPECT_THROW(CoordinatorServer(options, clock_, log_), CorruptDataError);
}

TEST_F(Coordinator, a_damaged_database_is_an_error_that_names_it) {
    files_->write_text_atomically(directory_.path() / "coordinator.sqlite", std::string(8192, 'x'));
    try {
        CoordinatorServer server(server_options(), clock_, log_);
        FAIL() << "a damaged database was taken";
    } catch (const CorruptDataError& error) {
        EXPECT_NE(std::string(error.what()).find("coordinator.sqlite is damaged"), std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace atl
