#include "comm/site/tcp_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <list>
#include <thread>
#include <utility>

#include "comm/site/endpoint.h"
#include "comm/site/outlet.h"
#include "comm/site/shared_memory_stream.h"
#include "comm/site/wake_up.h"

namespace atl {

namespace {

constexpr Milliseconds kLinger{200};
constexpr Milliseconds kDialPatience{2000};
constexpr Milliseconds kFirstPause{20};  // between attempts to dial; doubles
constexpr Milliseconds kLongestPause{500};
constexpr std::size_t kMostConnections = 1024;
constexpr std::int64_t kMostUnwrittenBytes =
    2 << 20;  // per peer: several packets, so that no connection runs dry

class TcpTransport final : public SiteTransport {
  public:
    TcpTransport(TransportOptions options, TcpOptions tcp, ReplaceStream replace);
    ~TcpTransport() override;

    SiteId self() const override { return endpoint_.options().self; }
    Incarnation incarnation() const override { return endpoint_.options().incarnation; }
    std::string address() const override { return address_; }
    void set_peers(const std::vector<Peer>& peers) override;
    SendResult send(Frame frame) override { return endpoint_.send(std::move(frame)); }
    std::optional<TransportEvent> poll(Deadline deadline) override;
    void interrupt() override { endpoint_.interrupt(); }
    std::vector<PeerCounters> counters() const override;
    std::int64_t bytes_under_way(SiteId peer) const override;
    void set_send_rate(SiteId peer, double bytes_per_second) override {
        if (Outlet* outlet = find_outlet(peer)) outlet->set_send_rate(bytes_per_second);
    }

  private:
    // One connection from its first attempt to its end.
    struct Session {
        std::string dials;  // empty: it was accepted
        SiteId site;        // dialled sessions know it before the peer has said so
        std::int32_t lane = 0;
        Incarnation peer;  // the process at the other end
        bool shares_memory = false;
        std::mutex mutex;
        std::shared_ptr<TcpStream> connection;  // these two are set once each, under the mutex
        Outlet::Stream stream;                  // what frames go over
        bool was_open = false;                  // these two are read when `done` is true
        std::atomic<bool> done = false;
        std::jthread thread;
    };
    // A connection that this side is to keep.
    struct Dial {
        std::string address;
        TimePoint next_try{};
        Milliseconds pause{0};
        bool under_way = false;
    };
    using DialKey = std::pair<SiteId, std::int32_t>;

    void keep();
    void take_new_peers();
    void accept_new();
    void dial_due(TimePoint now);
    void reap(TimePoint now);
    void start(const std::shared_ptr<Session>& session);
    void serve(Session& session);
    bool make_stream(Session& session);
    void serve_open(Session& session, Outlet& outlet);
    void write_all(Outlet& outlet, std::int32_t lane, const Outlet::Stream& stream);
    void flush();
    Outlet& outlet_of(SiteId site);
    Outlet* find_outlet(SiteId site) const;
    bool should_dial(const Peer& peer) const;

    const TcpOptions tcp_;
    const ReplaceStream replace_;
    SystemClock clock_;
    BufferPool pool_;
    WakeUp wake_up_;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> tick_now_ = false;
    Endpoint endpoint_;
    std::unique_ptr<TcpListener> listener_;
    std::string address_;

    std::mutex flush_mutex_;  // keeps the order of frames from the outbox to the outlets
    mutable std::mutex outlets_mutex_;
    std::map<SiteId, std::unique_ptr<Outlet>>
        outlets_;  // guarded by outlets_mutex_; an outlet stays for ever
    std::mutex peers_mutex_;
    std::optional<std::vector<Peer>> new_peers_;  // guarded by peers_mutex_

    std::map<DialKey, Dial> dials_;  // these two are of keeper_
    std::list<std::shared_ptr<Session>> sessions_;
    std::jthread keeper_;  // last: joined first
};

TcpTransport::TcpTransport(TransportOptions options, TcpOptions tcp, ReplaceStream replace)
    : tcp_(std::move(tcp)),
      replace_(std::move(replace)),
      endpoint_(
          std::move(options), [this] { flush(); }, kMostUnwrittenBytes) {
    if (!tcp_.bind.empty()) {
        listener_ = std::make_unique<TcpListener>(tcp_.bind);
        address_ = listener_->address();
        if (!tcp_.public_host.empty()) address_ = tcp_.public_host + address_.substr(address_.rfind(':'));
    }
    keeper_ = std::jthread([this] { keep(); });
}

TcpTransport::~TcpTransport() {
    endpoint_.say_goodbye();
    {
        const std::scoped_lock lock(outlets_mutex_);
        for (const auto& [site, outlet] : outlets_) outlet->wait_until_written(clock_.after(kLinger));
    }
    stop_ = true;
    wake_up_.ring();
    keeper_.join();
}

void TcpTransport::set_peers(const std::vector<Peer>& peers) {
    endpoint_.set_peers(peers);
    {
        const std::scoped_lock lock(peers_mutex_);
        new_peers_ = peers;
    }
    tick_now_ = true;
    wake_up_.ring();
}

std::optional<TransportEvent> TcpTransport::poll(Deadline deadline) {
    if (auto event = endpoint_.take()) return event;
    endpoint_.wait(deadline);
    return endpoint_.take();
}

std::vector<PeerCounters> TcpTransport::counters() const {
    std::vector<PeerCounters> counters = endpoint_.counters();
    for (PeerCounters& peer : counters) {
        const Outlet* outlet = find_outlet(peer.site);
        if (outlet == nullptr) continue;
        peer.round_trip_seconds = outlet->round_trip_seconds();
        peer.shares_memory = outlet->shares_memory();
    }
    return counters;
}

// What a writer has just handed over may be counted twice.
std::int64_t TcpTransport::bytes_under_way(SiteId peer) const {
    const Outlet* outlet = find_outlet(peer);
    const std::int64_t unwritten = endpoint_.bytes_unwritten(peer);
    return unwritten + (outlet == nullptr ? 0 : outlet->unacknowledged_bytes());
}

bool TcpTransport::should_dial(const Peer& peer) const {
    return !peer.address.empty() && (address_.empty() || self() > peer.site);
}

void TcpTransport::keep() {
    pthread_setname_np(pthread_self(), "site transport");
    TimePoint next_tick{};
    while (!stop_) {
        TimePoint next = next_tick;
        for (const auto& [key, dial] : dials_)
            if (!dial.under_way) next = std::min(next, dial.next_try);
        const auto rest = std::chrono::ceil<Milliseconds>(next - clock_.now());
        std::array<pollfd, 2> entries{{{wake_up_.descriptor(), POLLIN, 0}, {-1, POLLIN, 0}}};
        if (listener_) entries[1].fd = listener_->descriptor();
        ::poll(entries.data(), entries.size(), static_cast<int>(std::max<std::int64_t>(rest.count(), 0)));
        if (entries[0].revents != 0) wake_up_.clear();
        take_new_peers();
        accept_new();
        const TimePoint now = clock_.now();
        reap(now);
        dial_due(now);
        if (now >= next_tick || tick_now_.exchange(false)) next_tick = endpoint_.tick(now);
    }
    for (const auto& session : sessions_) {
        const std::scoped_lock lock(session->mutex);
        const std::string why = "this side has ended";
        if (session->connection) session->connection->end(why);
        if (session->stream) session->stream->end(why);
    }
    for (const auto& session : sessions_) session->thread.join();
    sessions_.clear();
}

void TcpTransport::take_new_peers() {
    std::optional<std::vector<Peer>> peers;
    {
        const std::scoped_lock lock(peers_mutex_);
        peers = std::exchange(new_peers_, std::nullopt);
    }
    if (!peers) return;
    std::map<DialKey, Dial> wanted;
    for (const Peer& peer : *peers) {
        for (std::int32_t lane = 0; should_dial(peer) && lane < tcp_.connections; ++lane)
            wanted[{peer.site, lane}].address = peer.address;
    }
    for (auto& [key, dial] : dials_) {
        const auto still = wanted.find(key);
        if (still != wanted.end() && still->second.address == dial.address) {
            still->second = dial;
        } else if (Outlet* outlet = find_outlet(key.first)) {
            outlet->end("this side has let go of it");
        }
    }
    dials_ = std::move(wanted);
}

void TcpTransport::accept_new() {
    while (listener_) {
        auto stream = listener_->accept();
        if (!stream) return;
        if (sessions_.size() >= kMostConnections) continue;
        auto session = std::make_shared<Session>();
        session->connection = std::move(stream);
        start(session);
    }
}

void TcpTransport::dial_due(TimePoint now) {
    for (auto& [key, dial] : dials_) {
        if (dial.under_way || now < dial.next_try) continue;
        dial.under_way = true;
        auto session = std::make_shared<Session>();
        session->dials = dial.address;
        session->site = key.first;
        session->lane = key.second;
        start(session);
    }
}

void TcpTransport::reap(TimePoint now) {
    std::erase_if(sessions_, [&](const std::shared_ptr<Session>& session) {
        if (!session->done) return false;
        session->thread.join();
        const auto dial = dials_.find({session->site, session->lane});
        if (!session->dials.empty() && dial != dials_.end() && dial->second.address == session->dials) {
            Dial& again = dial->second;
            again.under_way = false;
            again.pause =
                session->was_open ? kFirstPause : std::clamp(again.pause * 2, kFirstPause, kLongestPause);
            again.next_try = now + again.pause;
        }
        return true;
    });
}

void TcpTransport::start(const std::shared_ptr<Session>& session) {
    sessions_.push_back(session);
    session->thread = std::jthread([this, session = session.get()] {
        pthread_setname_np(pthread_self(), "site receives");
        serve(*session);
        session->done = true;
        wake_up_.ring();
    });
}

void TcpTransport::serve(Session& session) {
    const bool dialled = !session.dials.empty();
    if (dialled) {
        std::shared_ptr<TcpStream> connection = dial_tcp(session.dials, kDialPatience, stop_);
        const std::scoped_lock lock(session.mutex);
        if (stop_ || !connection) return;
        session.connection = std::move(connection);
    }
    const bool shares_memory = tcp_.shares_memory && !replace_ && session.connection->leads_to_own_host();
    const auto opening =
        session.connection->open({self(), session.lane, incarnation(), shares_memory}, tcp_.silence);
    if (!opening || stop_ || (dialled && opening->site != session.site)) return;
    session.site = opening->site;
    session.peer = opening->incarnation;
    if (!dialled) session.lane = opening->lane;
    session.shares_memory = shares_memory && opening->shares_memory;
    if (make_stream(session)) serve_open(session, outlet_of(session.site));
}

bool TcpTransport::make_stream(Session& session) {
    Outlet::Stream stream = session.connection;
    if (replace_) stream = replace_({session.connection, self(), session.site});
    if (session.shares_memory) stream = make_shared_memory_stream(session.connection);
    const std::scoped_lock lock(session.mutex);
    if (stop_ || !stream) return false;
    session.stream = std::move(stream);
    return true;
}

void TcpTransport::serve_open(Session& session, Outlet& outlet) {
    session.was_open = true;
    const Outlet::Stream& stream = session.stream;
    const bool is_first = outlet.attach(session.lane, session.peer, stream);
    // In either case the next hello is due now.
    if (!is_first || session.lane == 0)
        endpoint_.disconnected(session.site, "another connection took its place");
    tick_now_ = true;
    wake_up_.ring();
    {
        const std::jthread writer([&] { write_all(outlet, session.lane, stream); });
        while (auto arrived = stream->read(pool_, endpoint_.options().window_bytes))
            endpoint_.receive(session.site, arrived->head, std::move(arrived->body));
        const std::string why = stream->why();
        outlet.detach(stream, why, [&] { endpoint_.disconnected(session.site, why); });
    }
}

void TcpTransport::write_all(Outlet& outlet, std::int32_t lane, const Outlet::Stream& stream) {
    pthread_setname_np(pthread_self(), "site sends");
    while (stream->why().empty()) {
        if (auto frame = outlet.next(lane, stream, clock_.after(tcp_.heartbeat))) {
            stream->write(*frame);
            endpoint_.written(frame->to, frame->wire_bytes());
            frame->body = {};
            outlet.written();
        } else {
            stream->write_sign_of_life();
        }
    }
}

// From whichever thread filled the outbox.
void TcpTransport::flush() {
    std::vector<SiteId> unreachable;
    {
        const std::scoped_lock lock(flush_mutex_);
        for (OutgoingFrame& frame : endpoint_.drain_outbox()) {
            Outlet* outlet = find_outlet(frame.to);
            if (outlet != nullptr && outlet->is_open()) {
                outlet->add(std::move(frame));
            } else if (frame.kind != FrameKind::hello) {  // a hello comes again
                unreachable.push_back(frame.to);
            }
        }
    }
    for (const SiteId site : unreachable) endpoint_.disconnected(site, "there is no connection");
}

Outlet& TcpTransport::outlet_of(SiteId site) {
    const std::scoped_lock lock(outlets_mutex_);
    auto& outlet = outlets_[site];
    if (!outlet) outlet = std::make_unique<Outlet>();
    return *outlet;
}

Outlet* TcpTransport::find_outlet(SiteId site) const {
    const std::scoped_lock lock(outlets_mutex_);
    const auto found = outlets_.find(site);
    return found == outlets_.end() ? nullptr : found->second.get();
}

}  // namespace

std::unique_ptr<SiteTransport> make_tcp_transport(TransportOptions options, TcpOptions tcp,
                                                  ReplaceStream replace) {
    return std::make_unique<TcpTransport>(std::move(options), std::move(tcp), std::move(replace));
}

}  // namespace atl
