#include "coordinator/client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <zmq.hpp>

#include "coordinator/control_wire.h"
#include "core/error.h"
#include "rounds/messages.h"

namespace atl {
namespace {

constexpr int kReconnect_ms = 20;
constexpr int kReconnectMost_ms = 200;
constexpr Milliseconds kSlice{50};  // longest wait before the address is looked at again

std::string read_address(const std::filesystem::path& file) {
    std::ifstream stream(file);
    std::string address;
    std::getline(stream, address);
    return address;
}

void configure(zmq::socket_t& socket) {
    socket.set(zmq::sockopt::linger, 200);
    socket.set(zmq::sockopt::immediate, true);
    socket.set(zmq::sockopt::sndhwm, 16);
    socket.set(zmq::sockopt::reconnect_ivl, kReconnect_ms);
    socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMost_ms);
    socket.set(zmq::sockopt::maxmsgsize, std::int64_t(kLongestControlMessage));
}

// One question in text, one answer in text.
std::string ask(const std::string& address, std::string_view question, Milliseconds timeout) {
    zmq::context_t context(1);
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, int(timeout.count()));
    try {
        socket.connect("tcp://" + address);
    } catch (const zmq::error_t& error) {
        throw UserError(fmt::format("[control] {} is no address of a coordinator (HOST:PORT): {}", address,
                                    error.what()));
    }
    socket.send(zmq::buffer(question));
    zmq::message_t answer;
    if (!socket.recv(answer)) {
        throw CommError(fmt::format("[control] no coordinator answers at {} within {} ms: has the run ended?",
                                    address, timeout.count()));
    }
    return answer.to_string();
}

}  // namespace

class ControlClient::Connection {
  public:
    Connection(ControlClientOptions options, const Clock& clock)
        : options_(std::move(options)), clock_(clock), last_heard_(clock.now()), looked_(clock.now()) {
        dial(options_.address_file.empty() ? options_.address : current_address());
    }

    bool send(const Report& report) {
        look_again();
        if (!socket_) return false;
        const std::vector<std::byte> bytes = encode(report);
        return socket_->send(zmq::buffer(bytes), zmq::send_flags::dontwait).has_value();
    }

    std::optional<View> receive(Deadline deadline) {
        while (true) {
            look_again();
            std::optional<View> newest = drain();
            const TimePoint now = clock_.now();
            if (newest || now >= deadline) return newest;
            const auto left = std::chrono::ceil<Milliseconds>(deadline - now);
            wait(std::min(left, kSlice));
        }
    }

    int descriptor() const { return socket_ ? int(socket_->get(zmq::sockopt::fd)) : -1; }
    TimePoint last_heard() const { return last_heard_; }
    std::int64_t dropped() const { return dropped_; }

  private:
    std::string current_address() const {
        const std::string written = options_.address_file.empty() ? "" : read_address(options_.address_file);
        return written.empty() ? options_.address : written;
    }

    void dial(const std::string& address) {
        if (address.empty() || address.ends_with(":0") || address == address_) return;
        address_ = address;
        socket_.emplace(context_, zmq::socket_type::dealer);
        configure(*socket_);
        try {
            socket_->connect("tcp://" + address);
        } catch (const zmq::error_t& error) {
            throw CommError(
                fmt::format("[control] {} is no address of a coordinator: {}", address, error.what()));
        }
    }

    void look_again() {
        const TimePoint now = clock_.now();
        const bool silent = now - std::max(last_heard_, looked_) >= options_.look_again;
        if (socket_ && !silent) return;
        looked_ = now;
        dial(current_address());
    }

    std::optional<View> drain() {
        std::optional<View> newest;
        zmq::message_t message;
        while (socket_ && socket_->recv(message, zmq::recv_flags::dontwait)) {
            try {
                View view = decode_view({static_cast<const std::byte*>(message.data()), message.size()});
                last_heard_ = clock_.now();  // whoever else has the port now is no reason to stay
                const bool newer = !newest || view.term > newest->term ||
                                   (view.term == newest->term && view.version >= newest->version);
                if (newer) newest = std::move(view);
            } catch (const CorruptDataError&) {
                ++dropped_;
            }
        }
        return newest;
    }

    void wait(Milliseconds duration) {
        zmq::pollitem_t items[] = {{socket_ ? socket_->handle() : nullptr, 0, ZMQ_POLLIN, 0}};
        try {
            zmq::poll(items, socket_ ? 1 : 0, duration);
        } catch (const zmq::error_t& error) {
            if (error.num() != EINTR) throw;
        }
    }

    ControlClientOptions options_;
    const Clock& clock_;
    zmq::context_t context_{1};
    std::optional<zmq::socket_t> socket_;
    std::string address_;
    TimePoint last_heard_;
    TimePoint looked_;
    std::int64_t dropped_ = 0;
};

ControlClient::ControlClient(ControlClientOptions options, const Clock& clock)
    : connection_(std::make_unique<Connection>(std::move(options), clock)) {}
ControlClient::~ControlClient() = default;

bool ControlClient::send(const Report& report) {
    return connection_->send(report);
}
std::optional<View> ControlClient::receive(Deadline deadline) {
    return connection_->receive(deadline);
}
int ControlClient::descriptor() const {
    return connection_->descriptor();
}
TimePoint ControlClient::last_heard() const {
    return connection_->last_heard();
}
std::int64_t ControlClient::dropped() const {
    return connection_->dropped();
}

std::string fetch_status(const std::string& address, Milliseconds timeout) {
    return ask(address, kStatusRequest, timeout);
}

std::string request_changes(const std::string& address, const std::vector<std::string>& assignments,
                            Milliseconds timeout) {
    return ask(address, fmt::format("{}{}", kSetRequest, fmt::join(assignments, "\n")), timeout);
}

}  // namespace atl
