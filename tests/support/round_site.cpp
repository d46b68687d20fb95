#include "support/round_site.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "rounds/overloaded.h"

namespace atl::testing {
namespace {

constexpr std::int64_t kChunks = 4;
constexpr std::size_t kCheckpointsKept = 2;

}  // namespace

SimulatedSite::SimulatedSite(SiteInfo info, Hello hello, const WorldOptions& options, SiteWorld world)
    : info_(std::move(info)), hello_(std::move(hello)), options_(options), world_(std::move(world)) {}

void SimulatedSite::start() {
    ++process_;
    info_.incarnation = Incarnation(world_.dice->bits() | 1U);
    hello_.checkpoints.clear();
    for (const Checkpoint& checkpoint : disk_) hello_.checkpoints.push_back(checkpoint.reference);
    SiteOptions options;
    options.run_id = "run";
    options.self = info_;
    options.hello = hello_;
    options.resend = Milliseconds(300);
    options.progress = Milliseconds(2'000);
    state_.emplace(options);
    weights_.clear();
    work_.reset();
    handed_over_ = false;
    store_.clear();
    exit_code_.reset();
    heartbeat();
}

void SimulatedSite::crash() {
    ++process_;
    state_.reset();
}

void SimulatedSite::later(Milliseconds delay, std::function<void()> what) {
    world_.later(delay, [this, process = process_, what = std::move(what)] {
        if (process == process_ && state_) what();
    });
}

void SimulatedSite::feed(const SiteEvent& event) {
    if (!state_) return;
    const std::uint64_t process = process_;
    for (const SiteDecision& decision : state_->handle(event, world_.now())) {
        if (options_.print) world_.print(info_.id, decision);
        act(decision.action);
        if (process != process_) return;
    }
    if (options_.mutation == Mutation::apply_before_commit && state_ && state_->phase() == Phase::holding) {
        apply_without_commit();
    }
}

void SimulatedSite::heartbeat() {
    if (state_) world_.report(state_->report());
}

void SimulatedSite::tick() {
    feed(site_event::Tick{});
}

void SimulatedSite::receive(const View& view) {
    feed(site_event::ViewReceived{view});
}

SimulatedSite::StoreKey SimulatedSite::store_key(const PacketKey& key) {
    return {key.leg,    key.round, key.fragment, key.leg == Leg::mean ? key.attempt : Attempt(0),
            key.origin, key.chunk};
}

void SimulatedSite::receive(SiteId sender, const SitePacket& packet, Incarnation sender_incarnation) {
    if (!state_) return;
    const SiteView* peer = state_->view().find(sender);
    if (peer == nullptr || peer->info.incarnation != sender_incarnation) return;
    arriving_ = packet;
    const PacketKey key = arriving_->key;
    feed(site_event::PacketArrived{key, sender, digest_of(packet.content)});
}

void SimulatedSite::asked(SiteId requester, const std::vector<PacketKey>& keys) {
    feed(site_event::PacketsRequested{requester, keys});
}

void SimulatedSite::act(const SiteAction& action) {
    std::visit(
        Overloaded{
            [&](const site_action::LoadState& load_state) { load(load_state.from); },
            [&](const site_action::FetchState& fetch_state) { fetch(fetch_state.donors); },
            [&](const site_action::StartRound& start) { start_round(start); },
            [&](const site_action::KeepPacket& keep) {
                store_[store_key(keep.key)] = {arriving_->content, keep.key.attempt};
            },
            [&](const site_action::DiscardPackets& packets) { discard(packets); },
            [&](const site_action::SendPacket& send) {
                const Content& content = stored(store_key(send.key));
                for (const SiteId to : send.to) world_.send(to, {send.key, content});
            },
            [&](const site_action::RequestPackets& request) { world_.request(request.from, request.keys); },
            [&](const site_action::ReduceChunk& chunk) { reduce(chunk); },
            [&](const site_action::ApplyCommit& order) { apply(order.commit, order.state_hash); },
            [&](const site_action::DropContribution&) {
                ++work_number_;
                work_.reset();
                handed_over_ = false;
            },
            [&](const site_action::ForgetPackets& forget) {
                std::erase_if(store_, [&](const auto& entry) {
                    return std::get<Round>(entry.first) < forget.before &&
                           (!forget.fragment || std::get<FragmentId>(entry.first) == *forget.fragment);
                });
            },
            [&](const site_action::WriteCheckpoint& write) { write_checkpoint(write.checkpoint); },
            [&](const site_action::Evaluate& part) {
                evaluated_[part.round] = loss();
                // One token from each site, with a loss that tells the state: what is undone may not be taken again.
                later(Milliseconds(world_.dice->between(0, 20)),
                      [this, part, loss = loss()] { feed(site_event::Evaluated{{part.round, loss, 1}}); });
            },
            [&](const site_action::TakeEvaluation& all) {
                ATOLL_CHECK_LE(1, all.total.tokens);
                if (all.total.loss_sum != evaluated_[all.total.round] * double(all.total.tokens))
                    throw WorldViolation(fmt::format("site {} takes the evaluation of another state of round {}",
                                                     info_.id, all.total.round));
            },
            [&](const site_action::ReportNow&) { heartbeat(); },
            [&](const site_action::Stop& stop) {
                exit_code_ = stop.exit_code;
                crash();
            },
        },
        action);
}

void SimulatedSite::discard(const site_action::DiscardPackets& packets) {
    if (options_.mutation == Mutation::stale_means) reuse_means(packets);
    std::erase_if(store_, [&](const auto& entry) {
        const auto& [leg, round, fragment, attempt, origin, chunk] = entry.first;
        if (round != packets.round || fragment != packets.fragment) return false;
        if (leg == Leg::mean) return attempt < packets.means_before;
        return origin != info_.id && entry.second.second < packets.contributions_before;
    });
}

// The deliberate mistake: means of the attempt before are taken for those of the new one.
void SimulatedSite::reuse_means(const site_action::DiscardPackets& packets) {
    for (const auto& [key, stored] : store_) {
        const auto& [leg, round, fragment, attempt, origin, chunk] = key;
        if (leg != Leg::mean || round != packets.round || fragment != packets.fragment || origin == info_.id)
            continue;
        SitePacket stale{{leg, round, packets.fragment, packets.means_before, origin, chunk}, stored.first};
        later(Milliseconds(0), [this, stale] {
            arriving_ = stale;
            feed(site_event::PacketArrived{stale.key, stale.key.origin, digest_of(stale.content)});
        });
    }
}

void SimulatedSite::load(const StartFrom& from) {
    later(Milliseconds(world_.dice->between(1, 200)), [this, from] {
        site_event::StateLoaded loaded{from.round, from.step, from.state_hash, {}, from.fragments_applied};
        if (from.kind == StartFrom::Kind::initial) {
            weights_.assign(std::size_t(options_.fragments), std::vector<std::uint64_t>(kChunks, 1));
            loaded = {Round(0), Step(0), Hash128{1, 1}, {}};
        } else {
            const auto found = std::find_if(disk_.begin(), disk_.end(), [&](const Checkpoint& checkpoint) {
                return checkpoint.reference == CheckpointRef{from.step, from.round, from.state_hash,
                                                             from.fragments_applied};
            });
            if (found == disk_.end()) return feed(site_event::StateFailed{"no such checkpoint"});
            weights_ = found->weights;
            work_ = found->work;
            if (work_) loaded.plan = work_->plan;
        }
        fragments_applied_ = loaded.fragments_applied;
        weights_round_ = loaded.round;
        weights_hash_ = loaded.state_hash;
        feed(loaded);
    });
}

void SimulatedSite::fetch(const std::vector<SiteId>& donors) {
    const SiteId from = donors[std::size_t(world_.dice->between(0, std::int64_t(donors.size()) - 1))];
    later(Milliseconds(world_.dice->between(5, 400)), [this, from] {
        const SimulatedSite* donor = world_.donor(from);
        const bool holds = donor != nullptr && donor->state_ && !donor->weights_.empty();
        if (!holds) return feed(site_event::StateFailed{"the donor is gone"});
        weights_ = donor->weights_;
        weights_round_ = donor->weights_round_;
        weights_hash_ = donor->weights_hash_;
        fragments_applied_ = donor->fragments_applied_;
        work_.reset();
        const RoundPlan* plan = donor->state_->view().plan ? &*donor->state_->view().plan : nullptr;
        feed(site_event::StateLoaded{
            weights_round_, plan == nullptr ? Step(0) : plan->first_step, weights_hash_, {},
            fragments_applied_});
    });
}

void SimulatedSite::start_round(const site_action::StartRound& start) {
    ++work_number_;
    handed_over_ = false;
    if (start.from_outer || !work_ || work_->plan.round != start.plan.round) {
        work_ = Work{start.plan, start.plan.first_step, {}};
    }
    work_->plan = start.plan;
    train(work_number_);
}

bool SimulatedSite::work_goes_on() const {
    if (!work_ || !state_ || state_->phase() == Phase::finished) return false;
    return fragments_applied_ < std::int64_t(work_->plan.fragments.size());
}

// One step, or what is due before it; an apply that is due goes on from there.
void SimulatedSite::train(std::uint64_t work_number) {
    const RoundPlan& plan = work_->plan;
    const FragmentPlan& next = plan.fragments.at(std::size_t(fragments_applied_));
    if (work_->steps >= next.start_step && !handed_over_) {
        contribute(next);
        if (work_number != work_number_ || !work_goes_on()) return;
    }
    if (work_->steps == plan.apply_step(next)) return;
    later(Milliseconds(world_.dice->between(5, 60)), [this, work_number] {
        if (work_number != work_number_ || !work_) return;
        work_->steps = work_->steps.next();
        feed(site_event::StepDone{work_->steps});
        if (work_number == work_number_ && work_goes_on() && state_->phase() == Phase::training)
            train(work_number);
    });
}

void SimulatedSite::contribute(const FragmentPlan& plan) {
    const FragmentId fragment = plan.id;
    if (!work_->pending) {
        work_->pending = Delta{world_.dice->bits(), info_.id, work_->plan.round, fragment,
                               weights_.at(std::size_t(fragment.value())),
                               work_->plan.find(info_.id)->blocks};
        world_.auditor->on_delta(*work_->pending);
    }
    handed_over_ = true;
    const Delta delta = *work_->pending;
    const bool finite = !world_.dice->chance(options_.non_finite);
    const std::uint64_t work_number = work_number_;
    feed(site_event::ContributionDeclared{fragment, {finite, {1.0, 1.0}}});
    if (!finite) return;
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
        later(Milliseconds(chunk), [this, work_number, fragment, chunk, delta] {
            if (work_number != work_number_) return;
            const Content content{{Part{info_.id, 0, delta.id}}, chunk};
            store_[{Leg::contribution, delta.round, fragment, Attempt(0), info_.id, chunk}] = {content,
                                                                                               Attempt(0)};
            feed(site_event::ContributionEncoded{fragment, chunk, digest_of(content)});
        });
    }
}

void SimulatedSite::reduce(const site_action::ReduceChunk& chunk) {
    later(Milliseconds(world_.dice->between(0, 3)), [this, chunk] {
        Content mean{{}, chunk.chunk};
        for (const Contributor& contributor : chunk.contributors) {
            const auto found =
                store_.find({Leg::contribution, chunk.round, chunk.fragment, Attempt(0), contributor.site,
                             chunk.chunk});
            if (found == store_.end()) return;  // the attempt has changed meanwhile
            mean.parts.push_back(
                {contributor.site, contributor.weight, found->second.first.parts.front().delta});
        }
        store_[{Leg::mean, chunk.round, chunk.fragment, chunk.attempt, info_.id, chunk.chunk}] = {
            mean, chunk.attempt};
        feed(site_event::MeanReduced{chunk.fragment, chunk.attempt, chunk.chunk, digest_of(mean)});
    });
}

const Content& SimulatedSite::stored(const StoreKey& key) const {
    const auto found = store_.find(key);
    if (found == store_.end())
        throw WorldViolation(fmt::format("site {} uses a packet it does not hold", info_.id));
    return found->second.first;
}

std::vector<Content> SimulatedSite::means_of(const Commit& commit) const {
    std::vector<Content> means;
    const AttemptPlan attempt = attempt_of(commit);
    for (std::int64_t chunk = 0; chunk < commit.chunks; ++chunk) {
        if (!commit.direct) {
            means.push_back(
                stored({Leg::mean, commit.round, commit.fragment, commit.attempt, attempt.owner_of(chunk),
                        chunk}));
            continue;
        }
        Content mean{{}, chunk};
        for (const Contributor& contributor : commit.contributors) {
            const Content& content =
                stored({Leg::contribution, commit.round, commit.fragment, Attempt(0), contributor.site,
                        chunk});
            mean.parts.push_back({contributor.site, contributor.weight, content.parts.front().delta});
        }
        means.push_back(mean);
    }
    return means;
}

void SimulatedSite::apply(const Commit& commit, const Hash128& state_hash) {
    later(Milliseconds(world_.dice->between(0, 20)), [this, commit, state_hash] {
        auto& weights = weights_.at(std::size_t(commit.fragment.value()));
        weights = world_.auditor->apply(info_.id, commit, means_of(commit), weights);
        weights_hash_ = state_hash;
        ++fragments_applied_;
        handed_over_ = false;
        if (work_) work_->pending.reset();
        if (commit.ends_round()) {
            ++work_number_;
            work_.reset();
            weights_round_ = commit.round.next();
            fragments_applied_ = 0;
        }
        const std::uint64_t work_number = work_number_;
        feed(site_event::CommitApplied{commit.round, commit.fragment});
        if (work_number == work_number_ && work_goes_on() && state_->phase() == Phase::training)
            train(work_number);
    });
}

// The deliberate mistake: what a commit would apply is applied without waiting for it.
void SimulatedSite::apply_without_commit() {
    const Report report = state_->report();
    const FragmentReport& held = report.fragments.front();
    const AttemptPlan& attempt = *state_->view().attempt(held.fragment);
    Commit commit;
    commit.round = attempt.round;
    commit.fragment = attempt.fragment;
    commit.attempt = attempt.attempt;
    commit.direct = attempt.direct;
    commit.contributors = attempt.contributors;
    commit.owners = attempt.owners;
    commit.chunks = kChunks;
    commit.hash = *held.held;
    world_.auditor->apply(info_.id, commit, means_of(commit),
                          weights_.at(std::size_t(commit.fragment.value())));
}

void SimulatedSite::write_checkpoint(const CheckpointRef& reference) {
    const bool inside = work_ && work_->plan.round == reference.round && work_->steps == reference.step;
    Checkpoint checkpoint{reference, weights_, inside ? work_ : std::nullopt};
    later(Milliseconds(world_.dice->between(0, 30)), [this, checkpoint] {
        std::erase_if(disk_, [&](const Checkpoint& old) { return old.reference == checkpoint.reference; });
        disk_.push_back(checkpoint);
        if (disk_.size() > kCheckpointsKept) disk_.erase(disk_.begin());
        feed(site_event::CheckpointWritten{checkpoint.reference.step});
    });
}

std::string SimulatedSite::describe() const {
    if (!state_) return fmt::format("site {} down", info_.id);
    return fmt::format("site {} {} round {}", info_.id, name(state_->phase()), state_->round());
}

}  // namespace atl::testing
