#include "coordinator/coordinator_link.h"

#include <utility>

namespace atl {

CoordinatorLink::CoordinatorLink(ControlClientOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), last_heard_(clock.now()) {}

std::optional<View> CoordinatorLink::receive() {
    auto view = client().receive(clock_.now());
    if (view) last_heard_ = clock_.now();
    return view;
}

Milliseconds CoordinatorLink::silence() const {
    return std::chrono::duration_cast<Milliseconds>(clock_.now() - last_heard_.load());
}

ControlClient& CoordinatorLink::client() {
    if (!client_) client_.emplace(options_, clock_);
    return *client_;
}

}  // namespace atl
