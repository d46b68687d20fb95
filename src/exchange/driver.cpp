#include "exchange/driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "exchange/driver_tools.h"
#include "rounds/overloaded.h"

namespace atl {

namespace {

constexpr Milliseconds kTick{10};
constexpr int kEventsPerTurn = 32;

// Nobody, while another process has this site's name: it would break that one's connections.
std::vector<Peer> peers_of(const View& view, const SiteInfo& self) {
    std::vector<Peer> peers;
    if (view.name_is_taken(self)) return peers;
    for (const SiteView& site : view.sites) {
        if (site.info.id == self.id || is_gone(site.standing)) continue;
        peers.push_back({site.info.id, site.info.incarnation, site.info.address});
    }
    return peers;
}

bool same_peers(const std::vector<Peer>& one, const std::vector<Peer>& other) {
    return std::ranges::equal(one, other, [](const Peer& a, const Peer& b) {
        return a.site == b.site && a.incarnation == b.incarnation && a.address == b.address;
    });
}

}  // namespace

SiteDriver::SiteDriver(ExchangeOptions options, SiteTransport& transport, ControlLink& control,
                       const Clock& clock, Log log)
    : options_(std::move(options)),
      transport_(transport),
      control_(control),
      clock_(clock),
      log_(std::move(log)),
      state_(options_.site),
      moments_(options_.load_moments) {}
SiteDriver::~SiteDriver() = default;

bool SiteDriver::step() {
    bool busy = false;
    const TimePoint now = clock_.now();
    if (auto view = control_.receive()) {
        take_view(std::move(*view));
        busy = true;
    }
    for (int count = 0; count < kEventsPerTurn; ++count) {
        auto event = transport_.poll(now);
        if (!event) break;
        take(std::move(*event));
        busy = true;
    }
    busy = encode_next() || busy;
    if (now >= next_tick_) {
        next_tick_ = now + kTick;
        sends_.settle(transport_, now);
        moments_.step(now);
        handle(site_event::Tick{});
    }
    if (now >= next_report_ && !stopped_) {
        report();
    }
    fetcher_.step(transport_, now);
    return sends_.pump(store_, transport_, counting_) || busy;
}

void SiteDriver::take(TransportEvent event) {
    if (auto* frame = std::get_if<Frame>(&event)) return take_frame(std::move(*frame));
    const auto& peer = std::get<PeerEvent>(event);
    switch (peer.kind) {
        case PeerEvent::Kind::connected:
            log_.debug("[exchange] connected to site {}", called(peer.site));
            break;
        case PeerEvent::Kind::lost:
            sends_.connection_lost(peer.site);
            // At the end of a run sites go one after another.
            log_.write(stopped_ ? LogLevel::debug : LogLevel::warning,
                       fmt::format("[exchange] lost site {}: {}", called(peer.site), peer.detail));
            break;
        case PeerEvent::Kind::corrupt:
            log_.warning("[exchange] dropped a frame from site {}: {}", called(peer.site), peer.detail);
            break;
        case PeerEvent::Kind::writable:
            break;
    }
}

void SiteDriver::tell(const SiteEvent& event) {
    if (const auto* loaded = std::get_if<site_event::StateLoaded>(&event);
        loaded != nullptr && loaded->plan) {
        plan_ = loaded->plan;
    }
    const auto* applied = std::get_if<site_event::CommitApplied>(&event);
    if (applied != nullptr) release_mean(applied->fragment);
    handle(event);
    if (applied != nullptr) retry_deferred();  // the next round's plan may be here already
}

// The only fragment's mean stays where it is, for the next round; of several, memory is for one at a time.
void SiteDriver::release_mean(FragmentId fragment) {
    if (plan_ && plan_->fragments.size() > 1) means_.erase(fragment);
}

std::optional<WorkerOrder> SiteDriver::take_order() {
    if (orders_.empty()) return {};
    WorkerOrder next = std::move(orders_.front());
    orders_.pop_front();
    return next;
}

void SiteDriver::handle(const SiteEvent& event) {
    const std::vector<SiteDecision> decisions = state_.handle(event, clock_.now());
    follow_plan();
    for (const SiteDecision& decision : decisions) execute(decision);
}

void SiteDriver::follow_plan() {
    const View& view = state_.view();
    const std::tuple source(state_.round(), view.term, view.version);
    if (!view.plan || source == plan_source_) return;
    if (view.plan->round == state_.round() || !plan_) {
        plan_ = view.plan;
        plan_source_ = source;
    }
}

void SiteDriver::execute(const SiteDecision& decision) {
    std::visit(
        Overloaded{
            [&](const site_action::KeepPacket& keep) {
                ATOLL_CHECK(in_hand_ && *in_hand_ == keep.key, "a packet that is not in hand");
                kept_in_hand_ = true;
            },
            [&](const site_action::DiscardPackets& discard) {
                store_.discard_received(discard, transport_.self());
                means_[discard.fragment].forget();
            },
            [&](const site_action::SendPacket& send) { sends_.add(send.key, send.to); },
            [&](const site_action::RequestPackets& request) {
                (void)transport_.send(want_frame(request.keys, request.from));  // asked again if it gets lost
            },
            [&](const site_action::ReduceChunk& chunk) { reduce(chunk); },
            [&](const site_action::ForgetPackets& forget) { store_.forget_before(forget.before, forget.fragment); },
            [&](const site_action::ReportNow&) { report(); },
            [&](const site_action::ApplyCommit& commit) { apply(decision, commit); },
            [&](const auto&) { order(decision); },
        },
        decision.action);
}

void SiteDriver::report() {
    next_report_ = clock_.now() + options_.heartbeat;
    Report report = state_.report();
    report.send_bytes_per_second = sends_.send_bytes_per_second();
    control_.send(report);
}

void SiteDriver::order(const SiteDecision& decision) {
    if (std::holds_alternative<site_action::StartRound>(decision.action)) ++work_;
    if (const auto* drop = std::get_if<site_action::DropContribution>(&decision.action)) {
        ++work_;
        encodings_.clear();
        store_.discard_own_contributions(drop->round, drop->first, transport_.self());
    }
    if (std::holds_alternative<site_action::Stop>(decision.action)) stopped_ = true;
    log_.debug("[exchange] {}", decision.reason);
    orders_.push_back({decision.action, decision.reason, work_});
}

void SiteDriver::apply(const SiteDecision& decision, const site_action::ApplyCommit& apply) {
    const Commit& commit = apply.commit;
    encodings_.clear();
    finish_mean(commit);
    if (!commit.direct) store_.discard_contributions(commit.round, commit.fragment);
    counting_.end(commit.round, commit.fragment, clock_.now());
    if (commit.ends_round()) traffic_ = counting_.close(commit.round, transport_.counters());
    order(decision);
    orders_.back().mean = means_.at(commit.fragment).values();
}

void SiteDriver::take_view(View view) {
    const bool is_taken = view.name_is_taken(options_.site.self) &&
                          view.find(options_.site.self.id)->standing != Standing::suspect;
    if (is_taken && !name_is_taken_)
        log_.warning(
            "[exchange] another process is in the run as site {}: this one waits until that one is gone",
            options_.site.self.name);
    name_is_taken_ = is_taken;
    const std::vector<Peer> peers = peers_of(view, options_.site.self);
    if (!same_peers(peers, peers_)) {
        peers_ = peers;
        transport_.set_peers(peers);
        std::set<SiteId> sites;
        for (const Peer& peer : peers) sites.insert(peer.site);
        sends_.keep_only(sites);
    }
    handle(site_event::ViewReceived{std::move(view)});
    retry_deferred();
}

void SiteDriver::take_frame(Frame frame) {
    switch (frame.kind) {
        case FrameKind::packet:
            if (auto arrived = arrived_packet(std::move(frame))) take_packet(std::move(*arrived));
            break;
        case FrameKind::want:
            if (auto keys = wanted_keys(frame))
                handle(site_event::PacketsRequested{frame.from, std::move(*keys)});
            break;
        case FrameKind::state_request:
            for (Frame& answer : frame.leg == static_cast<std::uint8_t>(StateKind::outer)
                                     ? published_.answer(frame)
                                     : moments_.answer(frame, clock_.now()))
                (void)transport_.send(std::move(answer));
            break;
        case FrameKind::state_index:
        case FrameKind::state_piece:
            fetcher_.take(frame);
            break;
        default:
            log_.warning("[exchange] a {} frame from site {} has no place here", name(frame.kind),
                         called(frame.from));
    }
}

}  // namespace atl
