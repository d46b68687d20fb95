#include "comm/site/zmq_transport.h"

#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <charconv>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "comm/site/endpoint.h"
#include "comm/site/wake_up.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {

namespace {

constexpr const char* kMonitorAddress = "inproc://monitor";
constexpr int kLingerMs = 200;
constexpr int kFramesPerTurn = 64;

std::string routing_id(SiteId site) {
    return fmt::format("site {}", site);
}

SiteId site_of(const zmq::message_t& id) {
    const std::string_view text = id.to_string_view();
    std::int32_t number = 0;
    if (text.starts_with("site ")) std::from_chars(text.data() + 5, text.data() + text.size(), number);
    return SiteId(number);
}

// Called from ZeroMQ's own thread (tools/sanitizers/thread.txt names it).
void release_payload(void*, void* keeper) {
    delete static_cast<Payload*>(keeper);
}

// Hands the shared bytes to ZeroMQ, which gives them back through release_payload.
zmq::message_t message_of(Payload body) {
    if (body.size() == 0) return zmq::message_t();
    auto* keeper =
        new Payload(std::move(body));  // freed by the callback: ZeroMQ's C interface knows no owners
    auto* bytes = const_cast<std::byte*>(keeper->bytes().data());
    return zmq::message_t(bytes, keeper->size(), release_payload, keeper);
}

Payload payload_of(zmq::message_t message) {
    auto owner = std::make_shared<zmq::message_t>(std::move(message));
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(owner->data()), owner->size());
    return Payload(std::move(owner), bytes);
}

class ZmqTransport final : public SiteTransport {
  public:
    ZmqTransport(TransportOptions options, ZmqOptions zmq);
    ~ZmqTransport() override;

    SiteId self() const override { return endpoint_.options().self; }
    Incarnation incarnation() const override { return endpoint_.options().incarnation; }
    std::string address() const override { return address_; }
    void set_peers(const std::vector<Peer>& peers) override;
    SendResult send(Frame frame) override { return endpoint_.send(std::move(frame)); }
    std::optional<TransportEvent> poll(Deadline deadline) override;
    void interrupt() override { endpoint_.interrupt(); }
    std::vector<PeerCounters> counters() const override { return endpoint_.counters(); }
    std::int64_t bytes_under_way(SiteId) const override { return 0; }  // ZeroMQ doesn't say

  private:
    void configure(const ZmqOptions& zmq);
    void bind(const ZmqOptions& zmq);
    void run(const std::stop_token& stop);
    void dial_new_peers();
    bool receive_some();
    void receive_one(zmq::message_t id);
    void read_monitor();
    void send_all();
    bool should_dial(const Peer& peer) const;

    SystemClock clock_;
    WakeUp wake_up_;
    Endpoint endpoint_;
    std::string address_;
    zmq::context_t context_{1};
    zmq::socket_t socket_;  // these two belong to thread_ once it runs
    zmq::socket_t monitor_;
    std::map<SiteId, std::string> dialled_;  // of thread_
    std::map<int, SiteId> descriptors_;      // of thread_: which TCP socket is which peer's
    std::mutex peers_mutex_;
    std::optional<std::vector<Peer>> new_peers_;  // guarded by peers_mutex_
    std::jthread thread_;                         // last: joined first
};

ZmqTransport::ZmqTransport(TransportOptions options, ZmqOptions zmq)
    : endpoint_(std::move(options), [this] { wake_up_.ring(); }),
      socket_(context_, zmq::socket_type::router),
      monitor_(context_, zmq::socket_type::pair) {
    configure(zmq);
    bind(zmq);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ZmqTransport::~ZmqTransport() {
    endpoint_.say_goodbye();
    thread_.request_stop();
    wake_up_.ring();
    thread_.join();
}

void ZmqTransport::configure(const ZmqOptions& zmq) {
    socket_.set(zmq::sockopt::routing_id, routing_id(endpoint_.options().self));
    socket_.set(zmq::sockopt::router_mandatory, 1);  // an unreachable peer is an error, not a silent loss
    socket_.set(zmq::sockopt::router_handover, 1);   // a reconnection replaces the half-dead connection
    socket_.set(zmq::sockopt::immediate, 1);         // nothing is queued for whoever is not there
    socket_.set(zmq::sockopt::sndhwm, 0);            // credit bounds what is under way
    socket_.set(zmq::sockopt::rcvhwm, 0);
    socket_.set(zmq::sockopt::linger, kLingerMs);
    socket_.set(zmq::sockopt::heartbeat_ivl, static_cast<int>(zmq.heartbeat.count()));
    socket_.set(zmq::sockopt::heartbeat_timeout, static_cast<int>(zmq.silence.count()));
    socket_.set(zmq::sockopt::reconnect_ivl, 20);
    socket_.set(zmq::sockopt::reconnect_ivl_max, 500);
    socket_.set(zmq::sockopt::connect_timeout, 2000);
    socket_.set(zmq::sockopt::maxmsgsize, endpoint_.options().window_bytes);
    ATOLL_CHECK_EQ(zmq_socket_monitor(socket_.handle(), kMonitorAddress, ZMQ_EVENT_DISCONNECTED), 0);
    monitor_.set(zmq::sockopt::linger, 0);
    monitor_.connect(kMonitorAddress);
}

void ZmqTransport::bind(const ZmqOptions& zmq) {
    if (zmq.bind.empty()) return;
    try {
        socket_.bind("tcp://" + zmq.bind);
    } catch (const zmq::error_t& error) {
        throw UserError(
            fmt::format("[site transport] can't listen on {}: {}; choose another address or port 0", zmq.bind,
                        error.what()));
    }
    address_ = socket_.get(zmq::sockopt::last_endpoint).substr(std::string_view("tcp://").size());
    if (!zmq.public_host.empty()) address_ = zmq.public_host + address_.substr(address_.rfind(':'));
}

void ZmqTransport::set_peers(const std::vector<Peer>& peers) {
    endpoint_.set_peers(peers);
    {
        const std::scoped_lock lock(peers_mutex_);
        new_peers_ = peers;
    }
    wake_up_.ring();
}

std::optional<TransportEvent> ZmqTransport::poll(Deadline deadline) {
    if (auto event = endpoint_.take()) return event;
    endpoint_.wait(deadline);
    return endpoint_.take();
}

bool ZmqTransport::should_dial(const Peer& peer) const {
    if (peer.address.empty()) return false;
    return address_.empty() || self() > peer.site;
}

void ZmqTransport::dial_new_peers() {
    std::optional<std::vector<Peer>> peers;
    {
        const std::scoped_lock lock(peers_mutex_);
        peers = std::exchange(new_peers_, std::nullopt);
    }
    if (!peers) return;
    std::map<SiteId, std::string> wanted;
    for (const Peer& peer : *peers) {
        if (should_dial(peer)) wanted[peer.site] = "tcp://" + peer.address;
    }
    for (const auto& [site, address] : dialled_) {
        if (!wanted.contains(site) || wanted[site] != address) socket_.disconnect(address);
    }
    for (const auto& [site, address] : wanted) {
        const auto known = dialled_.find(site);
        if (known == dialled_.end() || known->second != address) socket_.connect(address);
    }
    dialled_ = std::move(wanted);
}

void ZmqTransport::run(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "site transport");
    TimePoint next_tick = clock_.now();
    while (!stop.stop_requested()) {
        const auto rest = std::chrono::ceil<Milliseconds>(next_tick - clock_.now());
        std::array<zmq::pollitem_t, 3> items{{{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                              {monitor_.handle(), 0, ZMQ_POLLIN, 0},
                                              {nullptr, wake_up_.descriptor(), ZMQ_POLLIN, 0}}};
        zmq::poll(items.data(), items.size(), std::max(rest, Milliseconds(0)));
        if (items[2].revents != 0) wake_up_.clear();
        dial_new_peers();
        while (receive_some()) send_all();
        read_monitor();
        if (clock_.now() >= next_tick) next_tick = endpoint_.tick(clock_.now());
        send_all();
    }
    send_all();
    socket_.close();
    monitor_.close();
}

// At most a few frames at a time, so that sending is never starved. True if there may be more.
bool ZmqTransport::receive_some() {
    for (int count = 0; count < kFramesPerTurn; ++count) {
        zmq::message_t id;
        if (!socket_.recv(id, zmq::recv_flags::dontwait)) return false;
        receive_one(std::move(id));
    }
    return true;
}

void ZmqTransport::receive_one(zmq::message_t id) {
    std::array<zmq::message_t, 2> parts;
    std::size_t count = 0;
    for (bool more = id.more(); more; ++count) {
        zmq::message_t part;
        (void)socket_.recv(part, zmq::recv_flags::none);  // the rest of a message is always here already
        more = part.more();
        if (count < parts.size()) parts[count] = std::move(part);
    }
    const SiteId from = site_of(id);
    const int descriptor = zmq_msg_get(parts[0].handle(), ZMQ_SRCFD);
    const auto known = descriptors_.find(descriptor);
    if (known == descriptors_.end() || known->second != from) {
        read_monitor();  // the end of the descriptor's former connection came before this one's first frame
        descriptors_[descriptor] = from;
    }
    const std::span<const std::byte> head(static_cast<const std::byte*>(parts[0].data()), parts[0].size());
    endpoint_.receive(from, head, payload_of(std::move(parts[1])));
}

void ZmqTransport::read_monitor() {
    while (true) {
        zmq::message_t event;
        if (!monitor_.recv(event, zmq::recv_flags::dontwait)) return;
        zmq::message_t address;
        (void)monitor_.recv(address, zmq::recv_flags::none);
        std::int32_t descriptor = 0;
        if (event.size() != 6) continue;
        std::memcpy(&descriptor, static_cast<const char*>(event.data()) + 2, sizeof(descriptor));
        const auto known = descriptors_.find(descriptor);
        if (known == descriptors_.end()) continue;
        endpoint_.disconnected(known->second, "the connection ended");
        descriptors_.erase(known);
    }
}

void ZmqTransport::send_all() {
    for (OutgoingFrame& frame : endpoint_.drain_outbox()) {
        try {
            const std::string id = routing_id(frame.to);
            socket_.send(zmq::buffer(id), zmq::send_flags::sndmore);
            socket_.send(zmq::buffer(frame.head), zmq::send_flags::sndmore);
            socket_.send(message_of(std::move(frame.body)), zmq::send_flags::none);
        } catch (const zmq::error_t& error) {
            // Nobody there. A hello comes again; anything else was for a connection that has just ended.
            if (frame.kind != FrameKind::hello) endpoint_.disconnected(frame.to, error.what());
        }
    }
}

}  // namespace

std::unique_ptr<SiteTransport> make_zmq_transport(TransportOptions options, ZmqOptions zmq) {
    return std::make_unique<ZmqTransport>(std::move(options), std::move(zmq));
}

}  // namespace atl
