#include "netlab/lab.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <span>
#include <utility>

#include "core/child_process.h"
#include "core/error.h"
#include "netlab/hosts.h"

namespace atl::netlab {
namespace {

constexpr Milliseconds kGrace{5000};
constexpr Milliseconds kLongestNap{200};
constexpr int kPacketsPerVisit = 64;  // so that one busy host can't starve the others

struct PacketInFlight {
    TimePoint due;
    std::int64_t number;  // keeps packets of the same instant in order
    int to;
    std::vector<std::byte> bytes;

    bool operator<(const PacketInFlight& other) const {  // a priority_queue has its greatest element on top
        return std::pair(other.due, other.number) < std::pair(due, number);
    }
};

class Links {
  public:
    Links(const Hosts& hosts, const LinkOptions& options) : hosts_(hosts.list()), emulator_(options) {}

    void deliver_due_packets(TimePoint now) {
        for (; !in_flight_.empty() && in_flight_.top().due <= now; in_flight_.pop()) {
            const PacketInFlight& packet = in_flight_.top();
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
            if (due) in_flight_.push({*due, next_number_++, to, {packet.begin(), packet.end()}});
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
    std::priority_queue<PacketInFlight> in_flight_;
    std::int64_t next_number_ = 0;
    std::array<std::byte, 1 << 16> buffer_;
};

// The signals that the loop reads as data instead of being interrupted by them.
Descriptor open_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    Descriptor descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (descriptor.number() < 0) throw WorldError("[netlab] can't open a signal descriptor");
    return descriptor;
}

// The signal that asks the lab to end, if one has come.
std::optional<int> read_end_request(const Descriptor& signals) {
    std::optional<int> request;
    signalfd_siginfo information{};
    while (::read(signals.number(), &information, sizeof(information)) == sizeof(information)) {
        const int signal = static_cast<int>(information.ssi_signo);
        if (signal != SIGCHLD) request = signal;
    }
    return request;
}

class Lab {
  public:
    explicit Lab(const LabOptions& options)
        : signals_(open_signals()),
          hosts_(options.prefix, options.links.hosts, options.mtu_bytes),
          links_(hosts_, options.links),
          command_({.command = options.command}) {
        for (const Host& host : hosts_.list()) polled_.push_back({host.tunnel.number(), POLLIN, 0});
        polled_.push_back({signals_.number(), POLLIN, 0});
    }

    LabResult run() {
        std::optional<ExitStatus> end;
        while (!(end = command_.poll())) turn();
        LabResult result;
        result.exit_code = ended_by_ ? 128 + *ended_by_ : end->signal != 0 ? 128 + end->signal : end->code;
        for (const Host& host : hosts_.list()) result.host_names.push_back(host.name);
        result.traffic = links_.emulator().traffic();
        return result;
    }

  private:
    void turn() {
        const TimePoint now = clock_.now();
        links_.deliver_due_packets(now);
        if (kill_at_ && now >= *kill_at_) command_.send_signal(SIGKILL);
        const auto next = std::min(links_.next_due().value_or(TimePoint::max()), now + kLongestNap);
        const auto nap = std::max(next - clock_.now(), std::chrono::nanoseconds(0));
        const timespec timeout{nap.count() / 1'000'000'000, nap.count() % 1'000'000'000};
        ::ppoll(polled_.data(), polled_.size(), &timeout, nullptr);
        for (std::size_t host = 0; host < hosts_.list().size(); ++host) {
            if (polled_[host].revents & POLLIN) links_.accept_packets(static_cast<int>(host));
        }
        if (const auto request = read_end_request(signals_); request && !ended_by_) {
            ended_by_ = request;
            kill_at_ = clock_.after(kGrace);
            command_.send_signal(SIGTERM);
        }
    }

    SystemClock clock_;
    Descriptor signals_;
    Hosts hosts_;
    Links links_;
    ChildProcess command_;
    std::vector<pollfd> polled_;
    std::optional<int> ended_by_;
    std::optional<Deadline> kill_at_;
};

}  // namespace

LabResult run_lab(const LabOptions& options) {
    return Lab(options).run();
}

}  // namespace atl::netlab
