#include "support/exchange_world.h"

#include <gtest/gtest.h>

#include "codec/packet.h"
#include "core/random.h"
#include "kernels/outer_step.h"
#include "rounds/overloaded.h"
#include "support/kernel_testing.h"
#include "support/site_transport.h"

namespace atl::test {

namespace {

constexpr Milliseconds kLongestTurn{5};

CoordinatorOptions coordinator_options(const WorldOptions& world) {
    CoordinatorOptions options;
    options.run_id = "test";
    for (int site = 0; site < world.sites; ++site) options.site_names.push_back(fmt::format("site{}", site));
    options.numbers.method.codec = world.codec;
    options.numbers.gather = is_gathered(codec_from_name(world.codec));
    options.numbers.inner_steps = world.overlap_steps > 0 ? 4 * world.fragments : 2 * world.fragments;
    options.numbers.total_steps = options.numbers.inner_steps * world.rounds;
    options.numbers.method.overlap_steps = world.overlap_steps;
    options.numbers.chunk_elements = world.chunk_elements;
    return options;
}

// A transport whose frames a test may change on their way out.
class TamperedTransport final : public SiteTransport {
  public:
    TamperedTransport(std::unique_ptr<SiteTransport> inner, std::function<void(Frame&)> change)
        : inner_(std::move(inner)), change_(std::move(change)) {}
    SiteId self() const override { return inner_->self(); }
    Incarnation incarnation() const override { return inner_->incarnation(); }
    std::string address() const override { return inner_->address(); }
    void set_peers(const std::vector<Peer>& peers) override { inner_->set_peers(peers); }
    SendResult send(Frame frame) override {
        change_(frame);
        return inner_->send(std::move(frame));
    }
    std::optional<TransportEvent> poll(Deadline deadline) override { return inner_->poll(deadline); }
    void interrupt() override { inner_->interrupt(); }
    std::vector<PeerCounters> counters() const override { return inner_->counters(); }
    void set_send_rate(SiteId peer, double rate) override { inner_->set_send_rate(peer, rate); }
    std::int64_t bytes_under_way(SiteId peer) const override { return inner_->bytes_under_way(peer); }

  private:
    std::unique_ptr<SiteTransport> inner_;
    std::function<void(Frame&)> change_;
};

}  // namespace

struct World::Link final : ControlLink {
    void send(const Report& report) override { reports.push_back(report); }
    std::optional<View> receive() override { return std::exchange(view, std::nullopt); }

    std::deque<Report> reports;
    std::optional<View> view;
};

World::World(WorldOptions options)
    : options_(std::move(options)),
      network_(options_.seed, options_.link),
      coordinator_(coordinator_options(options_), {}) {
    coordinator_.handle(coordinator_event::Started{}, now());
    for (std::size_t site = 0; site < options_.uplink_bytes_per_second.size(); ++site)
        network_.set_uplink(SiteId(static_cast<int>(site)), options_.uplink_bytes_per_second[site]);
    for (int site = 0; site < options_.sites; ++site) {
        sites_.push_back(std::make_unique<Site>());
        start(site, Incarnation(100 + static_cast<std::uint64_t>(site)));
    }
}
World::~World() = default;

void World::start(int number, Incarnation incarnation) {
    Site& site = *sites_[static_cast<std::size_t>(number)];
    site.incarnation = incarnation;
    site.transport = std::make_unique<TamperedTransport>(
        network_.join(transport_options(number, incarnation.value())), [this, number](Frame& frame) {
            if (on_send) on_send(number, frame);
        });
    site.control = std::make_unique<Link>();
    ExchangeOptions options;
    options.zstd = options_.zstd;
    options.instruction_set = instruction_set(number);
    options.site.run_id = "test";
    options.site.self = {SiteId(number), fmt::format("site{}", number), incarnation, ""};
    options.site.hello.blocks_per_epoch = 1000;
    for (std::int64_t i = 0; i < options_.fragments; ++i)
        options.site.hello.fragment_elements.push_back(fragment_begin(i + 1) - fragment_begin(i));
    site.driver = std::make_unique<SiteDriver>(std::move(options), *site.transport, *site.control,
                                               network_.clock(), Log("test", LogLevel::error));
}

kernels::InstructionSet World::instruction_set(int site) const {
    const auto sets = supported_sets();
    return options_.mixed_processors ? sets[static_cast<std::size_t>(site) % sets.size()] : sets.back();
}

void World::kill(int number) {
    Site& site = *sites_[static_cast<std::size_t>(number)];
    coordinator_.handle(coordinator_event::Disconnected{SiteId(number), site.incarnation}, now());
    site.driver.reset();
    site.control.reset();
    site.transport.reset();
}

bool World::all_stopped() const {
    return std::ranges::all_of(sites_,
                               [](const auto& site) { return !site->driver || site->driver->stopped(); });
}

std::vector<float> World::delta(int site, Round round) const {
    const RandomStream random(options_.seed, fmt::format("delta {} {}", site, round));
    std::vector<float> values(static_cast<std::size_t>(options_.elements));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(0.01 * random.normal(i));
    return values;
}

void World::work(int number, const WorkerOrder& order) {
    Site& site = *sites_[static_cast<std::size_t>(number)];
    SiteDriver& driver = *site.driver;
    std::visit(Overloaded{
                   [&](const site_action::LoadState& load) {
                       driver.tell(site_event::StateLoaded{
                           load.from.round, load.from.step, load.from.state_hash, {}});
                   },
                   [&](const site_action::StartRound& start) {
                       site.plan = start.plan;
                       site.work = order.work;
                       contribute(number, start.plan.fragments.front());
                   },
                   [&](const site_action::ApplyCommit& apply) {
                       const Commit& commit = apply.commit;
                       auto& means = site.means[commit.round];
                       means.resize(static_cast<std::size_t>(options_.elements));
                       std::ranges::copy(order.mean, part(means, commit.fragment).begin());
                       site.commits[commit.round] = commit;
                       site.committed[commit.round] = now();
                       if (site.loss) site.losses[commit.round] = *site.loss;
                       driver.tell(site_event::CommitApplied{commit.round, commit.fragment});
                       const auto next = static_cast<std::size_t>(commit.fragment.value()) + 1;
                       if (site.plan && site.plan->round == commit.round && !commit.ends_round())
                           contribute(number, site.plan->fragments[next]);
                   },
                   [&](const site_action::DropContribution&) { site.plan.reset(); },
                   [&](const site_action::WriteCheckpoint& write) {
                       driver.tell(site_event::CheckpointWritten{write.checkpoint.step});
                   },
                   [&](const site_action::Evaluate& part) {
                       driver.tell(site_event::Evaluated{{.round = part.round}});
                   },
                   [&](const site_action::FetchState&) {
                       driver.tell(site_event::StateFailed{"this world has no joiners"});
                   },
                   [](const auto&) {},
               },
               order.action);
}

std::span<float> World::part(std::vector<float>& values, FragmentId fragment) const {
    const std::int64_t begin = fragment_begin(fragment.value());
    return std::span(values).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(fragment_begin(fragment.value() + 1) - begin));
}

// Trains up to where the fragment starts, hands it over, and trains on to where it is applied.
void World::contribute(int number, const FragmentPlan& fragment) {
    Site& site = *sites_[static_cast<std::size_t>(number)];
    const RoundPlan plan = *site.plan;
    site.driver->tell(site_event::StepDone{fragment.start_step});
    auto values = delta(number, plan.round);
    if (tamper) tamper(number, plan.round, values);
    if (on_contribute) on_contribute(number, plan.round);
    contributed_[plan.round] = now();
    const auto of_fragment = part(values, fragment.id);
    const auto buffer = std::make_shared<std::vector<float>>(of_fragment.begin(), of_fragment.end());
    const bool feeds_back = needs_error_feedback(codec_from_name(options_.codec));
    site.loss = feeds_back ? buffer : nullptr;
    ContributionFacts facts;
    if (kernels::all_finite(of_fragment)) facts.tensor_norms = {kernels::norm(of_fragment)};
    if (declare) declare(number, plan.round, facts);
    site.driver->contribute({plan.round, fragment.id, site.work, buffer, facts, site.loss});
    const Step end = plan.apply_step(fragment);
    for (Step step = fragment.start_step.next(); step <= end; step = step.next())
        site.driver->tell(site_event::StepDone{step});
}

void World::coordinate() {
    coordinator_.handle(coordinator_event::Tick{}, now());
    for (auto& site : sites_) {
        if (!site->control) continue;
        while (!site->control->reports.empty()) {
            const Report report = std::move(site->control->reports.front());
            site->control->reports.pop_front();
            coordinator_.handle(coordinator_event::ReportReceived{report}, now());
            site->control->view = coordinator_.view_for(report.site, report.run_id);
        }
    }
    if (coordinator_.version() == announced_version_) return;
    announced_version_ = coordinator_.version();
    for (std::size_t i = 0; i < sites_.size(); ++i) {
        if (!sites_[i]->control) continue;
        const SiteInfo info{SiteId(static_cast<int>(i)), fmt::format("site{}", i), sites_[i]->incarnation,
                            ""};
        sites_[i]->control->view = coordinator_.view_for(info, "test");
    }
}

bool World::run_until(const std::function<bool()>& done, Milliseconds limit) {
    const TimePoint end = now() + limit;
    while (!done()) {
        if (now() >= end) return false;
        bool busy = false;
        for (int number = 0; number < options_.sites; ++number) {
            Site& site = *sites_[static_cast<std::size_t>(number)];
            if (!site.driver) continue;
            busy = site.driver->step() || busy;
            while (site.driver) {
                const auto order = site.driver->take_order();
                if (!order) break;
                work(number, *order);
                busy = true;
            }
        }
        coordinate();
        if (!busy) network_.advance(std::min(end, now() + kLongestTurn));
    }
    return true;
}

std::vector<float> World::expected_direct_mean(const Commit& commit) const {
    const Codec& agreed = codec_from_name(options_.codec);
    std::vector<float> sum(static_cast<std::size_t>(options_.elements));
    const bool equal = std::ranges::all_of(commit.contributors, [&](const Contributor& contributor) {
        return contributor.weight == commit.contributors.front().weight;
    });
    float total = 0;
    for (const Contributor& contributor : commit.contributors) {
        const float weight = equal ? 1.0F : static_cast<float>(contributor.weight);
        total += weight;
        const auto values = delta(contributor.site.value(), commit.round);
        std::size_t count = 0;
        std::int64_t fragment = 0;
        for (std::size_t begin = 0; begin < values.size(); begin += count) {
            while (static_cast<std::int64_t>(begin) >= fragment_begin(fragment + 1)) ++fragment;
            count = std::min(static_cast<std::size_t>(options_.chunk_elements),
                             static_cast<std::size_t>(fragment_begin(fragment + 1)) - begin);
            const auto packet = PacketEncoder(agreed, false).encode(std::span(values).subspan(begin, count));
            std::vector<float> decoded(count);
            PacketDecoder(agreed).decode(*packet, decoded);
            for (std::size_t i = 0; i < count; ++i) {
                volatile const float product = weight * decoded[i];
                sum[begin + i] = sum[begin + i] + product;
            }
        }
    }
    for (float& value : sum) value /= total;
    return sum;
}

}  // namespace atl::test
