// What a site does about packets: send its own, reduce the chunks it owns, notice when it holds everything, and ask
// again for what does not come.
#include <algorithm>

#include "core/check.h"
#include "rounds/site_data.h"

namespace atl {
namespace {

constexpr std::size_t kKeysPerRequest = 1024;
constexpr int kSlowestResend = 4;  // the pause between requests doubles up to this many times

}  // namespace

FragmentExchange& SiteState::Data::exchange(FragmentId fragment) {
    return current.try_emplace(fragment, self()).first->second;
}

FragmentExchange* SiteState::Data::turn() {
    const auto found = current.find(FragmentId(static_cast<std::int32_t>(fragments_applied)));
    return found == current.end() ? nullptr : &found->second;
}

FragmentExchange* SiteState::Data::exchange_of(const PacketKey& key, bool create) {
    std::map<FragmentId, FragmentExchange>* where = nullptr;
    if (key.round == round) where = &current;
    if (key.round == round.next()) where = &early;
    if (key.round.next() == round) where = &kept;
    if (where == nullptr || !has_state()) return nullptr;
    if (create && where != &kept) return &where->try_emplace(key.fragment, self()).first->second;
    const auto found = where->find(key.fragment);
    return found == where->end() ? nullptr : &found->second;
}

void SiteState::Data::send_own(FragmentExchange& exchange) {
    if (!exchange.attempt() || !working) return;
    const AttemptPlan& attempt = *exchange.attempt();
    for (const std::int64_t chunk : exchange.encoded_chunks()) {
        const std::vector<SiteId> receivers = exchange.take_receivers(chunk);
        if (receivers.empty()) continue;
        const PacketKey key{Leg::contribution, attempt.round, attempt.fragment,
                            attempt.attempt,   self(),        chunk};
        act(site_action::SendPacket{key, receivers}, "own contribution");
    }
}

void SiteState::Data::on_encoded(const site_event::ContributionEncoded& chunk) {
    if ((phase != Phase::exchanging && phase != Phase::training) || !working) return;
    FragmentExchange& mine = exchange(chunk.fragment);
    mine.encoded(chunk.chunk, chunk.digest);
    ++progress;
    if (!mine.attempt()) return;
    const AttemptPlan& attempt = *mine.attempt();
    const std::vector<SiteId> receivers = mine.take_receivers(chunk.chunk);
    if (!receivers.empty()) {
        const PacketKey key{Leg::contribution, attempt.round, attempt.fragment,
                            attempt.attempt,   self(),        chunk.chunk};
        act(site_action::SendPacket{key, receivers}, "own contribution");
    }
    reduce_if_ready(mine, chunk.chunk);
    check_holding();
}

void SiteState::Data::reduce_if_ready(FragmentExchange& exchange, std::int64_t chunk) {
    if (!exchange.take_reducible(chunk)) return;
    const AttemptPlan& attempt = *exchange.attempt();
    act(site_action::ReduceChunk{attempt.round, attempt.fragment, attempt.attempt, chunk,
                                 attempt.contributors},
        "every contribution to it is here");
}

void SiteState::Data::on_reduced(const site_event::MeanReduced& mean) {
    const auto found = current.find(mean.fragment);
    if (found == current.end() || !found->second.attempt()) return;
    FragmentExchange& mine = found->second;
    const AttemptPlan& attempt = *mine.attempt();
    if (attempt.attempt != mean.attempt || attempt.direct || attempt.owner_of(mean.chunk) != self()) return;
    mine.reduced(mean.chunk, mean.digest);
    ++progress;
    std::vector<SiteId> receivers = attempt.members;
    std::erase(receivers, self());
    const PacketKey key{Leg::mean, attempt.round, attempt.fragment, attempt.attempt, self(), mean.chunk};
    if (!receivers.empty()) act(site_action::SendPacket{key, receivers}, "own mean");
    check_holding();
}

void SiteState::Data::on_packet(const site_event::PacketArrived& packet, TimePoint now) {
    FragmentExchange* mine = exchange_of(packet.key, true);
    if (mine == nullptr || packet.key.round.next() == round) return;
    if (!mine->arrived(packet.key, packet.digest, packet.least_norm)) return;
    act(site_action::KeepPacket{packet.key}, "needed");
    ++progress;
    for (const SiteId peer : {packet.key.origin, packet.sender}) {
        mine->complaints.erase({peer, ComplaintKind::missing});
        auto& of_fragment = waits[packet.key.fragment];
        const auto wait = of_fragment.find(peer);
        if (wait != of_fragment.end()) wait->second = {now, now, 0};
    }
    if (packet.key.round != round) return;
    if (packet.key.leg == Leg::contribution) reduce_if_ready(*mine, packet.key.chunk);
    check_holding();
    if (mine->holds_all() && phase != Phase::applying) follow_view(now);
}

void SiteState::Data::on_unusable(const site_event::PacketUnusable& packet) {
    const auto found = current.find(packet.key.fragment);
    if (packet.key.round != round || found == current.end()) return;
    found->second.complaints.insert({packet.key.origin, packet.kind});
    act(site_action::ReportNow{},
        fmt::format("packets of site {} are {}", view.called(packet.key.origin), name(packet.kind)));
}

void SiteState::Data::on_request(const site_event::PacketsRequested& request) {
    for (const PacketKey& wanted : request.keys) {
        const FragmentExchange* mine = exchange_of(wanted, false);
        if (mine == nullptr) continue;
        const auto key = mine->find(wanted);
        if (key) act(site_action::SendPacket{*key, {request.requester}}, "asked for");
    }
}

void SiteState::Data::check_holding() {
    const FragmentExchange* mine = turn();
    if (mine == nullptr || view.round != round || (phase != Phase::exchanging && phase != Phase::training))
        return;
    if (!mine->holds_all() || !mine->complaints.empty() || !mine->attempt()->is_member(self())) return;
    if (phase == Phase::exchanging) return enter(Phase::holding, "every mean is here");
    const std::pair held(mine->attempt()->fragment, mine->attempt()->attempt);
    if (told_held == held) return;
    told_held = held;
    ++progress;
    act(site_action::ReportNow{}, "every mean is here before it is due");
}

// Can the peer be expected to have sent by now?
bool SiteState::Data::owes(const FragmentExchange& exchange, SiteId peer) const {
    const SiteView* site = view.find(peer);
    if (site == nullptr || is_gone(site->standing) || site->round != round) return false;
    const std::int64_t number = exchange.attempt()->fragment.value();
    if (site->fragments_started <= number) return false;
    const std::vector<SiteId> contributions = exchange.missing_contributions();
    if (std::find(contributions.begin(), contributions.end(), peer) != contributions.end()) return true;
    return !site->blocked || site->fragments_started > number + 1;
}

void SiteState::Data::ask_owing_peers(FragmentExchange& exchange, TimePoint now) {
    std::set<SiteId> peers;
    for (const SiteId peer : exchange.missing_contributions()) peers.insert(peer);
    for (const SiteId peer : exchange.missing_means()) peers.insert(peer);
    peers.erase(self());
    auto& waiting = waits[exchange.attempt()->fragment];
    std::erase_if(waiting, [&](const auto& wait) { return !peers.contains(wait.first); });
    for (const SiteId peer : peers) {
        if (!owes(exchange, peer)) {
            waiting.erase(peer);
            continue;
        }
        const auto [entry, fresh] = waiting.try_emplace(peer, Wait{now, now, 0});
        Wait& wait = entry->second;
        if (fresh) continue;
        if (now - wait.asked >= options.resend * (1 << std::min(wait.times, kSlowestResend))) {
            std::vector<PacketKey> keys = exchange.missing_from(peer);
            if (keys.size() > kKeysPerRequest) keys.resize(kKeysPerRequest);
            act(site_action::RequestPackets{peer, keys}, "nothing has come from it for a while");
            wait.asked = now;
            ++wait.times;
        }
        if (now - wait.since < options.progress) continue;
        if (exchange.complaints.insert({peer, ComplaintKind::missing}).second) {
            act(site_action::ReportNow{},
                fmt::format("site {} owes packets for {} ms", view.called(peer), options.progress.count()));
        }
    }
}

void SiteState::Data::ask_for_committed(const Commit& commit, FragmentExchange& exchange, TimePoint now) {
    if (committed_asked && now - *committed_asked < options.resend) return;
    committed_asked = now;
    // Those that it waited for first; they may have begun anew since, and others have fetched it from them.
    std::vector<SiteId> holders;
    for (const bool member : {true, false}) {
        for (const SiteView& site : view.sites) {
            const bool is_member = std::ranges::find(commit.members, site.info.id) != commit.members.end();
            if (is_member == member && site.info.id != self() && !is_gone(site.standing))
                holders.push_back(site.info.id);
        }
    }
    if (holders.empty()) return;
    const SiteId from = holders[committed_turn++ % holders.size()];
    std::vector<PacketKey> keys;
    for (const Contributor& contributor : commit.contributors) {
        for (PacketKey key : exchange.missing_from(contributor.site)) {
            if (key.leg == (commit.direct ? Leg::contribution : Leg::mean)) keys.push_back(key);
        }
    }
    if (keys.size() > kKeysPerRequest) keys.resize(kKeysPerRequest);
    if (!keys.empty())
        act(site_action::RequestPackets{from, keys}, "the round is committed and they are missing here");
}

void SiteState::Data::ask_again(TimePoint now) {
    FragmentExchange* mine = turn();
    if (mine == nullptr || view.round != round) return;
    const bool under_way = phase == Phase::exchanging || (phase == Phase::training && mine->facts());
    if (under_way && mine->attempt() && mine->attempt()->is_member(self())) ask_owing_peers(*mine, now);
}

}  // namespace atl
