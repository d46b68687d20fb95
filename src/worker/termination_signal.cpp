#include "worker/termination_signal.h"

#include <signal.h>
#include <time.h>

namespace atl {

TerminationSignal::TerminationSignal() {
    sigset_t termination;
    ::sigemptyset(&termination);
    ::sigaddset(&termination, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &termination, nullptr);
    watcher_ = std::jthread([this, termination](const std::stop_token& stop) {
        const timespec look_interval{0, 100'000'000};
        while (!stop.stop_requested())
            if (::sigtimedwait(&termination, nullptr, &look_interval) == SIGTERM) raised_ = true;
    });
}

}  // namespace atl
