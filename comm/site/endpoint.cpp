#include "comm/site/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/hash.h"

namespace atl {

namespace {

constexpr std::chrono::milliseconds kFirstHelloInterval{20};
constexpr std::chrono::milliseconds kLongestHelloInterval{250};

bool is_transports_own(FrameKind kind) {
    return kind < FrameKind::control;
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
    std::vector<std::byte> bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
}

template <class T>
std::optional<T> value_of(const std::vector<std::byte>& bytes) {
    T value;
    if (bytes.size() != sizeof(value)) return {};
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
}

struct Credit {
    std::uint64_t nonce;
    std::int64_t bytes_granted;
};

}  // namespace

Endpoint::Endpoint(TransportOptions options, std::function<void()> wake_wire,
                   std::optional<std::int64_t> most_unwritten_bytes)
    : options_(std::move(options)),
      run_(xxh3_64(std::as_bytes(std::span(options_.run_id)))),
      wake_wire_(std::move(wake_wire)),
      most_unwritten_bytes_(most_unwritten_bytes) {
    ATOLL_CHECK_NE(options_.incarnation.value(), std::uint64_t{0}, "a living site has an incarnation");
}

void Endpoint::set_peers(const std::vector<Peer>& peers) {
    const std::scoped_lock lock(mutex_);
    const auto listed = [&](SiteId site) {
        return std::ranges::any_of(peers, [&](const Peer& peer) { return peer.site == site; });
    };
    if (!options_.accept_unlisted)
        std::erase_if(links_, [&](const auto& entry) { return !listed(entry.first); });
    for (const Peer& peer : peers) {
        ATOLL_CHECK(peer.site != options_.self, "site {} listed as its own peer", peer.site);
        Link& link = links_[peer.site];
        const bool same = peer.incarnation == link.peer.incarnation || peer.incarnation == Incarnation();
        if (!same && link.peer.incarnation != Incarnation()) {
            take_down(link, "replaced by another incarnation");
            link.peer_nonce = 0;
        }
        const Incarnation known = same ? link.peer.incarnation : peer.incarnation;
        link.any_incarnation = peer.incarnation == Incarnation();
        link.peer = peer;
        link.peer.incarnation = known;
        link.next_hello = {};
    }
}

SendResult Endpoint::send(Frame frame) {
    frame.body.hash();  // outside the lock: the one pass over the bytes
    std::unique_lock lock(mutex_);
    Link* link = find(frame.to);
    if (link == nullptr || !link->is_up) return SendResult::not_connected;
    const std::int64_t bytes = frame.wire_bytes();
    ATOLL_CHECK_LE(bytes, options_.window_bytes, "a {} frame larger than the window", name(frame.kind));
    if (!has_credit(*link, bytes)) {
        link->was_refused_credit = true;
        return SendResult::no_credit;
    }
    link->bytes_sent += bytes;
    const bool was_empty = outbox_.empty();
    post(*link, std::move(frame));
    lock.unlock();
    if (was_empty) wake_wire_();
    return SendResult::accepted;
}

std::optional<TransportEvent> Endpoint::take() {
    std::unique_lock lock(mutex_);
    if (inbox_.empty()) return {};
    TransportEvent event = std::move(inbox_.front());
    inbox_.pop_front();
    const bool was_empty = outbox_.empty();
    if (const Frame* frame = std::get_if<Frame>(&event)) {
        Link* link = find(frame->from);
        if (link != nullptr && link->is_up) grant_credit(*link, frame->wire_bytes());
    }
    const bool filled = was_empty && !outbox_.empty();
    lock.unlock();
    if (filled) wake_wire_();
    return event;
}

bool Endpoint::wait(Deadline deadline) {
    std::unique_lock lock(mutex_);
    inbox_filled_.wait_until(lock, deadline, [&] { return !inbox_.empty() || is_interrupted_; });
    return std::exchange(is_interrupted_, false);
}

void Endpoint::interrupt() {
    const std::scoped_lock lock(mutex_);
    is_interrupted_ = true;
    inbox_filled_.notify_all();
}

std::vector<PeerCounters> Endpoint::counters() const {
    const std::scoped_lock lock(mutex_);
    std::vector<PeerCounters> all;
    for (const auto& [site, counters] : counters_) all.push_back(counters);
    return all;
}

std::int64_t Endpoint::bytes_unwritten(SiteId site) const {
    const std::scoped_lock lock(mutex_);
    const auto found = links_.find(site);
    return found == links_.end() ? 0 : found->second.bytes_unwritten;
}

void Endpoint::receive(SiteId from, std::span<const std::byte> head, Payload body) {
    body.hash();  // outside the lock: the one pass over the bytes
    const auto wire_bytes = static_cast<std::int64_t>(head.size() + body.size());
    ReadFrame read = read_frame(head, std::move(body), run_);

    std::unique_lock lock(mutex_);
    const bool was_empty = outbox_.empty();
    if (!read.frame) {
        counters_of(from).wire_bytes_received += wire_bytes;
        ++counters_of(from).frames_corrupt;
        push_event({PeerEvent::Kind::corrupt, from, {}, read.problem});
        return;
    }
    counters_of(read.frame->from).wire_bytes_received += wire_bytes;
    accept(std::move(*read.frame));
    const bool filled = was_empty && !outbox_.empty();
    lock.unlock();
    if (filled) wake_wire_();
}

void Endpoint::accept(Frame frame) {
    const bool for_this_life = frame.to == options_.self && (frame.to_incarnation == options_.incarnation ||
                                                             frame.to_incarnation == Incarnation());
    if (frame.kind == FrameKind::hello && for_this_life) return accept_hello(frame);

    Link* link = find(frame.from);
    const bool from_this_life =
        link != nullptr && link->is_up && link->peer.incarnation == frame.from_incarnation;
    if (!from_this_life || frame.to != options_.self || frame.to_incarnation != options_.incarnation) {
        ++counters_of(frame.from).frames_stale;
        return;
    }
    switch (frame.kind) {
        case FrameKind::credit:
            return accept_credit(*link, frame);
        case FrameKind::goodbye:
            link->left = frame.from_incarnation;
            return take_down(*link, "said goodbye");
        default:
            break;
    }
    PeerCounters& counters = counters_of(frame.from);
    counters.payload_bytes_received += static_cast<std::int64_t>(frame.prefix.size() + frame.body.size());
    inbox_.emplace_back(std::move(frame));
    inbox_filled_.notify_all();
}

void Endpoint::accept_hello(const Frame& frame) {
    const auto hello = value_of<Hello>(frame.prefix);
    Link* link = find(frame.from);
    if (link == nullptr && options_.accept_unlisted) {
        link = &links_[frame.from];
        link->peer.site = frame.from;
        link->any_incarnation = true;
    }
    const bool acceptable = hello && link != nullptr && link->left != frame.from_incarnation &&
                            (link->any_incarnation || link->peer.incarnation == frame.from_incarnation);
    if (!acceptable) {
        ++counters_of(frame.from).frames_stale;
        return;
    }
    if (link->peer.incarnation != frame.from_incarnation) {
        take_down(*link, "another incarnation took its place");
        link->peer.incarnation = frame.from_incarnation;
        link->peer_nonce = 0;
    }
    if (hello->nonce < link->peer_nonce) return;  // a late repetition
    const bool is_new = hello->nonce > link->peer_nonce;
    if (is_new) {
        take_down(*link, "connected anew");
        link->peer_nonce = hello->nonce;
        link->bytes_sent = 0;
        link->bytes_granted = hello->window_bytes;
    }
    if (hello->echo == link->nonce && !link->is_up) bring_up(*link);
    if (hello->echo != link->nonce || !hello->sender_is_up) post_hello(*link);
}

void Endpoint::accept_credit(Link& link, const Frame& frame) {
    const auto credit = value_of<Credit>(frame.prefix);
    if (!credit || credit->nonce != link.peer_nonce) return;
    link.bytes_granted = std::max(link.bytes_granted, credit->bytes_granted);
    say_writable(link);
}

void Endpoint::disconnected(SiteId site, const std::string& why) {
    const std::scoped_lock lock(mutex_);
    if (Link* link = find(site)) {
        take_down(*link, why);
        link->next_hello = {};
        link->hello_interval = {};
    }
}

void Endpoint::refund(SiteId site, std::int64_t wire_bytes) {
    const std::scoped_lock lock(mutex_);
    Link* link = find(site);
    if (link == nullptr) return;
    link->bytes_sent = std::max<std::int64_t>(0, link->bytes_sent - wire_bytes);
    say_writable(*link);
}

void Endpoint::written(SiteId site, std::int64_t wire_bytes) {
    const std::scoped_lock lock(mutex_);
    Link* link = find(site);
    if (link == nullptr) return;
    link->bytes_unwritten = std::max<std::int64_t>(0, link->bytes_unwritten - wire_bytes);
    if (link->bytes_unwritten <= most_unwritten_bytes_.value_or(0) / 2) say_writable(*link);
}

bool Endpoint::has_credit(const Link& link, std::int64_t wire_bytes) const {
    if (most_unwritten_bytes_ && link.bytes_unwritten >= *most_unwritten_bytes_) return false;
    return link.bytes_sent + wire_bytes <= link.bytes_granted;
}

void Endpoint::say_writable(Link& link) {
    if (!link.was_refused_credit) return;
    link.was_refused_credit = false;
    push_event({PeerEvent::Kind::writable, link.peer.site, link.peer.incarnation, {}});
}

void Endpoint::say_goodbye() {
    std::unique_lock lock(mutex_);
    const bool was_empty = outbox_.empty();
    for (auto& [site, link] : links_) {
        if (!link.is_up) continue;
        Frame frame;
        frame.kind = FrameKind::goodbye;
        frame.to = site;
        post(link, std::move(frame));
    }
    const bool filled = was_empty && !outbox_.empty();
    lock.unlock();
    if (filled) wake_wire_();
}

TimePoint Endpoint::tick(TimePoint now) {
    std::unique_lock lock(mutex_);
    const bool was_empty = outbox_.empty();
    TimePoint next = now + kLongestHelloInterval;
    for (auto& [site, link] : links_) {
        if (link.is_up) continue;
        if (link.next_hello <= now) {
            post_hello(link);
            link.hello_interval =
                std::clamp(link.hello_interval * 2, kFirstHelloInterval, kLongestHelloInterval);
            link.next_hello = now + link.hello_interval;
        }
        next = std::min(next, link.next_hello);
    }
    const bool filled = was_empty && !outbox_.empty();
    lock.unlock();
    if (filled) wake_wire_();
    return next;
}

std::deque<OutgoingFrame> Endpoint::drain_outbox() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(outbox_, {});
}

void Endpoint::take_down(Link& link, const std::string& why) {
    if (!link.is_up) return;
    link.is_up = false;
    link.was_refused_credit = false;
    link.bytes_unwritten = 0;
    ++link.nonce;
    std::erase_if(outbox_, [&](const OutgoingFrame& frame) { return frame.to == link.peer.site; });
    push_event({PeerEvent::Kind::lost, link.peer.site, link.peer.incarnation, why});
}

void Endpoint::bring_up(Link& link) {
    link.is_up = true;
    link.bytes_unwritten = 0;
    link.bytes_taken = 0;
    link.bytes_granted_to_peer = options_.window_bytes;
    link.hello_interval = {};
    push_event({PeerEvent::Kind::connected, link.peer.site, link.peer.incarnation, {}});
}

void Endpoint::post(Link& link, Frame frame) {
    frame.from = options_.self;
    frame.from_incarnation = options_.incarnation;
    frame.to_incarnation = link.peer.incarnation;
    PeerCounters& counters = counters_of(link.peer.site);
    counters.wire_bytes_sent += frame.wire_bytes();
    if (!is_transports_own(frame.kind)) {
        counters.payload_bytes_sent += static_cast<std::int64_t>(frame.prefix.size() + frame.body.size());
    }
    if (most_unwritten_bytes_) link.bytes_unwritten += frame.wire_bytes();
    outbox_.push_back({frame.to, frame.kind, write_head(frame, run_), std::move(frame.body)});
}

void Endpoint::post_hello(Link& link) {
    Frame frame;
    frame.kind = FrameKind::hello;
    frame.to = link.peer.site;
    frame.prefix = bytes_of(Hello{link.nonce, link.peer_nonce, options_.window_bytes, link.is_up ? 1u : 0u});
    post(link, std::move(frame));
}

void Endpoint::grant_credit(Link& link, std::int64_t wire_bytes) {
    link.bytes_taken += wire_bytes;
    const std::int64_t grant = link.bytes_taken + options_.window_bytes;
    // In quarters of a window: rare enough to cost nothing, early enough that the peer need not stop.
    if (grant - link.bytes_granted_to_peer < options_.window_bytes / 4) return;
    link.bytes_granted_to_peer = grant;
    Frame frame;
    frame.kind = FrameKind::credit;
    frame.to = link.peer.site;
    frame.prefix = bytes_of(Credit{link.nonce, grant});
    post(link, std::move(frame));
}

void Endpoint::push_event(PeerEvent event) {
    inbox_.emplace_back(std::move(event));
    inbox_filled_.notify_all();
}

PeerCounters& Endpoint::counters_of(SiteId site) {
    PeerCounters& counters = counters_[site];
    counters.site = site;
    return counters;
}

Endpoint::Link* Endpoint::find(SiteId site) {
    const auto found = links_.find(site);
    return found == links_.end() ? nullptr : &found->second;
}

}  // namespace atl
