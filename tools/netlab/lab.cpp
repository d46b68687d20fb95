#include "netlab/lab.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "netlab/hosts.h"
#include "netlab/lab_command.h"

namespace atl::netlab {
namespace {

constexpr Milliseconds kLongestNap{200};
constexpr int kPacketsPerVisit = 64;  // so that one busy host can't starve the others

struct PacketInFlight {
    TimePoint due;
    std::int64_t number;  // keeps packets of the same instant in order
    int from;
    int to;
    bool at_receiver;  // it has passed its receiver's link, too
    std::vector<std::byte> bytes;

    bool operator<(const PacketInFlight& other) const {  // a heap has its greatest element on top
        return std::pair(other.due, other.number) < std::pair(due, number);
    }
};

// By the time at which they are due.
class PacketsInFlight {
  public:
    bool empty() const { return heap_.empty(); }
    const PacketInFlight& top() const { return heap_.front(); }
    void push(PacketInFlight packet) {
        heap_.push_back(std::move(packet));
        std::push_heap(heap_.begin(), heap_.end());
    }
    PacketInFlight take() {
        std::pop_heap(heap_.begin(), heap_.end());
        PacketInFlight packet = std::move(heap_.back());
        heap_.pop_back();
        return packet;
    }

  private:
    std::vector<PacketInFlight> heap_;
};

class Links {
  public:
    Links(const Hosts& hosts, const LinkOptions& options) : hosts_(hosts.list()), emulator_(options) {}

    void deliver_due_packets(TimePoint now) {
        while (!in_flight_.empty() && in_flight_.top().due <= now) {
            PacketInFlight packet = in_flight_.take();
            if (!packet.at_receiver) {
                const auto bytes = static_cast<std::int64_t>(packet.bytes.size());
                const auto arrives = emulator_.receive(packet.from, packet.to, bytes, packet.due);
                if (!arrives) continue;
                if (*arrives > now) {
                    packet.due = *arrives;
                    packet.at_receiver = true;
                    in_flight_.push(std::move(packet));
                    continue;
                }
            }
            // A host that doesn't take the packet now has lost it, as a full receive queue loses one.
            [[maybe_unused]] const ssize_t written =
                ::write(hosts_[packet.to].tunnel.number(), packet.bytes.data(), packet.bytes.size());
        }
    }

    void accept_packets(int from) {
        for (int count = 0; count < kPacketsPerVisit; ++count) {
            const ssize_t bytes = ::read(hosts_[from].tunnel.number(), buffer_.data(), buffer_.size());
            if (bytes <= 0) return;
            const auto packet = std::span(buffer_).first(static_cast<std::size_t>(bytes));
            const int to = destination_host(packet, static_cast<int>(hosts_.size()));
            if (to < 0) continue;
            const auto due = emulator_.send(from, to, bytes, clock_.now());
            if (due) in_flight_.push({*due, next_number_++, from, to, false, {packet.begin(), packet.end()}});
        }
    }

    std::optional<TimePoint> next_due() const {
        return in_flight_.empty() ? std::nullopt : std::optional(in_flight_.top().due);
    }
    const LinkEmulator& emulator() const { return emulator_; }

  private:
    std::span<const Host> hosts_;
    LinkEmulator emulator_;
    SystemClock clock_;
    PacketsInFlight in_flight_;
    std::int64_t next_number_ = 0;
    std::array<std::byte, 1 << 16> buffer_;
};

class Lab {
  public:
    explicit Lab(const LabOptions& options)
        : hosts_(options.prefix, options.links.hosts, options.mtu_bytes),
          links_(hosts_, options.links),
          command_(options.command) {
        for (const Host& host : hosts_.list()) polled_.push_back({host.tunnel.number(), POLLIN, 0});
        polled_.push_back({command_.signals().number(), POLLIN, 0});
    }

    LabResult run() {
        std::optional<int> code;
        while (!(code = command_.exit_code())) turn();
        LabResult result{.exit_code = *code, .host_names = {}, .traffic = {}};
        for (const Host& host : hosts_.list()) result.host_names.push_back(host.name);
        result.traffic = links_.emulator().traffic();
        return result;
    }

  private:
    void turn() {
        const TimePoint now = clock_.now();
        links_.deliver_due_packets(now);
        const auto next = std::min(links_.next_due().value_or(TimePoint::max()), now + kLongestNap);
        const auto nap = std::max(next - clock_.now(), std::chrono::nanoseconds(0));
        const timespec timeout{nap.count() / 1'000'000'000, nap.count() % 1'000'000'000};
        ::ppoll(polled_.data(), polled_.size(), &timeout, nullptr);
        for (std::size_t host = 0; host < hosts_.list().size(); ++host) {
            if (polled_[host].revents & POLLIN) links_.accept_packets(static_cast<int>(host));
        }
        command_.tend();
    }

    SystemClock clock_;
    Hosts hosts_;
    Links links_;
    LabCommand command_;
    std::vector<pollfd> polled_;
};

}  // namespace

LabResult run_lab(const LabOptions& options) {
    return Lab(options).run();
}

}  // namespace atl::netlab
