#include "netlab/lab_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.h"

namespace atl::netlab {
namespace {

constexpr Milliseconds kGrace{5000};
constexpr int kNapMs = 200;

// The signals that are read as data instead of interrupting anything.
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

}  // namespace

LabCommand::LabCommand(const std::vector<std::string>& command)
    : signals_(open_signals()), command_({.command = command}) {}

void LabCommand::tend() {
    if (kill_at_ && clock_.now() >= *kill_at_) command_.send_signal(SIGKILL);
    if (const auto request = read_end_request(signals_); request && !ended_by_) {
        ended_by_ = request;
        kill_at_ = clock_.after(kGrace);
        command_.send_signal(SIGTERM);
    }
}

std::optional<int> LabCommand::exit_code() {
    const auto end = command_.poll();
    if (!end) return std::nullopt;
    return ended_by_ ? 128 + *ended_by_ : end->signal != 0 ? 128 + end->signal : end->code;
}

int LabCommand::wait() {
    while (true) {
        if (const auto code = exit_code()) return *code;
        pollfd entry{signals_.number(), POLLIN, 0};
        ::poll(&entry, 1, kNapMs);
        tend();
    }
}

}  // namespace atl::netlab
