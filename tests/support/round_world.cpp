#include "support/round_world.h"

#include <fmt/format.h>

#include <map>
#include <queue>
#include <set>

#include "support/round_site.h"

namespace atl::testing {
namespace {

constexpr std::int64_t kRounds = 5;  // the last is a step shorter
constexpr const char* kInnerStepsKey = "outer.inner_steps";
constexpr std::int64_t kBlocksPerEpoch = 23;
constexpr Milliseconds kHeartbeat{200};
constexpr Milliseconds kFaultsEnd{4'000};
constexpr Milliseconds kGiveUp{240'000};
constexpr int kMostFaults = 6;

class World {
  public:
    explicit World(const WorldOptions& options) : options_(options), dice_(options.seed) {
        for (int i = 0; i < options.sites; ++i) names_.push_back(fmt::format("site{}", i));
        for (int i = 0; i < options.sites; ++i) make_site(SiteId(i));
    }

    WorldOutcome run() {
        start_coordinator();
        for (auto& [id, site] : sites_) {
            later(Milliseconds(dice_.between(0, 300)), [&site = site] { site.start(); });
            every(kHeartbeat, [&site = site] { site.heartbeat(); });
            every(Milliseconds(100), [&site = site] { site.tick(); });
        }
        every(Milliseconds(50), [this] { feed(coordinator_event::Tick{}); });
        every(Milliseconds(250), [this] { supervise(); });
        if (options_.change_steps)
            later(Milliseconds(dice_.between(0, kFaultsEnd.count())), [this] { change_inner_steps(); });
        if (options_.faults) {
            const std::int64_t faults = dice_.between(1, kMostFaults);
            for (std::int64_t i = 0; i < faults; ++i) {
                later(Milliseconds(dice_.between(0, kFaultsEnd.count())), [this] { fault(); });
            }
        }
        while (!done_ && !events_.empty() && now_ < TimePoint{} + kGiveUp) {
            auto event = events_.begin();
            now_ = event->first;
            const auto what = std::move(event->second);
            events_.erase(event);
            what();
        }
        outcome_.finished = done_;
        outcome_.rounds = auditor_.rounds();
        outcome_.attempts = auditor_.later_attempts();
        outcome_.lengths = std::int64_t(lengths_.size());
        outcome_.seconds = seconds(now_ - TimePoint{});
        outcome_.state = describe();
        return outcome_;
    }

  private:
    void make_site(SiteId id) {
        SiteWorld world;
        world.dice = &dice_;
        world.auditor = &auditor_;
        world.now = [this] { return now_; };
        world.later = [this](Milliseconds delay, std::function<void()> what) {
            later(delay, std::move(what));
        };
        world.report = [this](const Report& report) {
            auditor_.on_report(report);
            transmit(report.site.id, SiteId(-1), [this, report] { receive(report); });
        };
        world.send = [this, id](SiteId to, const SitePacket& packet) {
            const Incarnation incarnation = sites_.at(id).incarnation();
            transmit(id, to,
                     [this, id, to, packet, incarnation] { sites_.at(to).receive(id, packet, incarnation); });
        };
        world.request = [this, id](SiteId to, const std::vector<PacketKey>& keys) {
            transmit(id, to, [this, id, to, keys] { sites_.at(to).asked(id, keys); });
        };
        world.donor = [this](SiteId from) { return sites_.at(from).up() ? &sites_.at(from) : nullptr; };
        world.print = [this](SiteId site, const SiteDecision& decision) {
            fmt::print("{:8.3f} site {} action {}: {}\n", seconds(now_ - TimePoint{}), site,
                       decision.action.index(), decision.reason);
        };
        Hello hello;
        hello.settings["model.layers"] = "2";
        hello.blocks_per_epoch = kBlocksPerEpoch;
        hello.fragment_elements.assign(std::size_t(options_.fragments), 4 * 16);
        const SiteInfo info{id, names_[std::size_t(id.value())], Incarnation(0), "address"};
        sites_.emplace(id, SimulatedSite(info, hello, options_, world));
    }

    void later(Milliseconds delay, std::function<void()> what) {
        events_.emplace(now_ + delay, std::move(what));
    }
    void every(Milliseconds period, const std::function<void()>& what) {
        later(period, [this, period, what] {
            what();
            every(period, what);
        });
    }
    bool faulty() const { return options_.faults && now_ < TimePoint{} + kFaultsEnd; }

    // Messages overtake one another, come twice or not at all, and not across a cut link (SiteId(-1): coordinator).
    void transmit(SiteId from, SiteId to, const std::function<void()>& deliver) {
        if (cuts_.contains(std::minmax(from, to))) return;
        if (faulty() && dice_.chance(0.05)) return;
        const int copies = faulty() && dice_.chance(0.05) ? 2 : 1;
        for (int copy = 0; copy < copies; ++copy) {
            const std::int64_t slow = faulty() && dice_.chance(0.05) ? 300 : 10;
            later(Milliseconds(dice_.between(0, slow)), deliver);
        }
    }

    std::int64_t total_steps() const { return kRounds * options_.inner_steps - 1; }
    // What was told last, else the configuration's.
    std::int64_t inner_steps(const CoordinatorRecord& record) const {
        const auto changed = record.changes.find(kInnerStepsKey);
        return changed == record.changes.end() ? options_.inner_steps : std::stoll(changed->second);
    }

    void change_inner_steps() {
        if (!coordinator_) return;
        RunNumbers numbers = coordinator_->numbers();
        numbers.inner_steps = dice_.between(1, 5);
        feed(coordinator_event::NumbersChanged{
            numbers, {{kInnerStepsKey, fmt::format("{}", numbers.inner_steps)}}, "told"});
    }

    // A round that is planned for the first time has the steps that were told last, on every site.
    void check_length(const RoundPlan& plan) {
        if (stored_.rounds.contains(plan.round)) return;
        if (plan.last_step() < Step(total_steps())) lengths_.insert(plan.inner_steps());
        const std::int64_t expected = std::min(inner_steps(coordinator_->record()), total_steps() - plan.first_step.value());
        for (const SitePlan& site : plan.sites) {
            if (site.contributes && site.inner_steps != expected)
                throw WorldViolation(fmt::format("round {}: {} steps for site {}, told were {}", plan.round,
                                                 site.inner_steps, site.site, expected));
        }
    }

    void start_coordinator() {
        CoordinatorOptions options;
        options.run_id = "run";
        options.site_names = names_;
        options.settings["model.layers"] = "2";
        options.min_sites = options_.min_sites;
        options.numbers.inner_steps = inner_steps(stored_);
        options.numbers.total_steps = total_steps();
        options.numbers.evaluate_interval = 1;
        options.numbers.method.overlap_steps = options_.overlap_steps;
        options.numbers.a_round_late = options_.a_round_late;
        options.numbers.checkpoint_interval = 5;
        options.numbers.chunk_elements = 16;
        options.timeouts.progress = Milliseconds(2'000);
        options.timeouts.reconnect = Milliseconds(800);
        options.timeouts.quorum = Milliseconds(3'000);
        options.timeouts.join = Milliseconds(3'000);
        coordinator_.emplace(options, stored_);
        feed(coordinator_event::Started{});
    }

    void receive(Report report) {
        if (!coordinator_) return;
        if (options_.mutation == Mutation::forged_hashes) forge(report);
        const SiteInfo from = report.site;
        const std::string run_id = report.run_id;
        if (!feed(coordinator_event::ReportReceived{std::move(report)})) return;
        answer(from, run_id);
    }

    // The deliberate mistake: as soon as one site holds a hash, every other report is read as holding it, too.
    void forge(Report& report) {
        for (FragmentReport& fragment : report.fragments) {
            const auto key = std::tuple(report.round, fragment.fragment, fragment.attempt);
            if (fragment.held) forged_.emplace(key, *fragment.held);
            if (const auto found = forged_.find(key); found != forged_.end()) fragment.held = found->second;
        }
    }

    // False: the coordinator crashed before it could tell anybody.
    bool feed(const CoordinatorEvent& event) {
        if (!coordinator_) return false;
        const std::int64_t version = coordinator_->version();
        const std::vector<CoordinatorDecision> decisions = coordinator_->handle(event, now_);
        bool wrote = false;
        for (const CoordinatorDecision& decision : decisions) {
            if (options_.print)
                fmt::print("{:8.3f} coordinator: {}\n", seconds(now_ - TimePoint{}), decision.reason);
            auditor_.on_decision(decision);
            if (const auto* round = std::get_if<coordinator_action::StoreRound>(&decision.action))
                check_length(round->record.plan);
            wrote = wrote || !std::holds_alternative<coordinator_action::Note>(decision.action);
        }
        if (wrote) {
            if (options_.mutation == Mutation::tell_before_store) forgettable_ = stored_;
            stored_ = coordinator_->record();
        }
        if (wrote && faulty() && dice_.chance(0.01)) {
            crash_coordinator();
            return false;
        }
        if (coordinator_->version() == version) return true;
        for (const auto& [id, site] : sites_) {
            if (site.up()) answer({id, names_[std::size_t(id.value())], site.incarnation(), ""}, "run");
        }
        return true;
    }

    void answer(const SiteInfo& to, const std::string& run_id) {
        const auto view = std::make_shared<View>(coordinator_->view_for(to, run_id));
        transmit(SiteId(-1), to.id, [this, view, to] {
            if (sites_.at(to.id).up() && sites_.at(to.id).incarnation() == to.incarnation)
                sites_.at(to.id).receive(*view);
        });
    }

    void crash_coordinator() {
        if (!coordinator_) return;
        ++outcome_.crashes;
        coordinator_.reset();
        if (forgettable_) {
            stored_.rounds = forgettable_->rounds;
            forgettable_.reset();
        }
        if (options_.print) fmt::print("{:8.3f} coordinator crashes\n", seconds(now_ - TimePoint{}));
        later(Milliseconds(dice_.between(10, 1'500)), [this] {
            if (!coordinator_) start_coordinator();
        });
    }

    void crash_site(SiteId id) {
        SimulatedSite& site = sites_.at(id);
        if (!site.up()) return;
        ++outcome_.crashes;
        if (options_.print) fmt::print("{:8.3f} site {} crashes\n", seconds(now_ - TimePoint{}), id);
        const Incarnation incarnation = site.incarnation();
        site.crash();
        disconnect(id, incarnation);
    }

    void disconnect(SiteId id, Incarnation incarnation) {
        later(Milliseconds(dice_.between(0, 50)), [this, id, incarnation] {
            feed(coordinator_event::Disconnected{id, incarnation});
        });
    }

    void fault() {
        const SiteId site(std::int32_t(dice_.between(0, options_.sites - 1)));
        switch (dice_.between(0, 5)) {
            case 0:
            case 1:
                crash_site(site);
                break;
            case 2:
                crash_coordinator();
                break;
            case 3:
                disconnect(site, sites_.at(site).incarnation());
                break;  // and it comes back at once
            default:
                cut(site);
                break;
        }
    }

    void cut(SiteId site) {
        const SiteId other(std::int32_t(dice_.between(-1, options_.sites - 1)));
        if (other == site) return;
        const auto link = std::minmax(site, other);
        const std::pair<SiteId, SiteId> pair(link.first, link.second);
        cuts_.insert(pair);
        later(Milliseconds(dice_.between(100, 3'500)), [this, pair] { cuts_.erase(pair); });
    }

    // What a user or a service manager does: start again what has died, or the whole run once it has ended badly.
    void supervise() {
        bool any_up = false;
        for (const auto& [id, site] : sites_) any_up = any_up || site.up();
        if (coordinator_ && coordinator_->view().ending) {
            if (any_up && !coordinator_->done()) return;
            if (coordinator_->view().ending->exit_code == 0) {
                done_ = true;
                return;
            }
            ++outcome_.resumes;
            for (const auto& [id, site] : sites_) crash_site(id);
            start_coordinator();
        }
        for (auto& [id, site] : sites_) {
            if (!site.up() && dice_.chance(0.4)) site.start();
        }
    }

    std::string describe() const {
        std::string text;
        if (coordinator_) {
            const View& view = coordinator_->view();
            text = fmt::format("coordinator term {} round {} {}", view.term, view.round,
                               view.plan ? "open" : "idle");
        }
        for (const auto& [id, site] : sites_) text += "; " + site.describe();
        return text;
    }

    WorldOptions options_;
    Dice dice_;
    RoundAuditor auditor_;
    TimePoint now_;
    std::multimap<TimePoint, std::function<void()>> events_;
    std::vector<std::string> names_;
    std::map<SiteId, SimulatedSite> sites_;
    std::set<std::pair<SiteId, SiteId>> cuts_;
    std::optional<CoordinatorState> coordinator_;
    CoordinatorRecord stored_;
    std::optional<CoordinatorRecord> forgettable_;
    std::map<std::tuple<Round, FragmentId, Attempt>, Hash128> forged_;
    std::set<std::int64_t> lengths_;
    bool done_ = false;
    WorldOutcome outcome_;
};

}  // namespace

WorldOutcome run_world(const WorldOptions& options) {
    return World(options).run();
}

}  // namespace atl::testing
