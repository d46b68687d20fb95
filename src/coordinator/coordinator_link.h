// The control connection as the exchange's thread uses it: made there at its first call, because a client stays
// with the thread that made it.
//
// Threads: send and receive from one, silence from any. Neither blocks. Errors: CommError for an address that is none.
#pragma once

#include <atomic>
#include <optional>

#include "coordinator/client.h"
#include "rounds/control_link.h"

namespace atl {

class CoordinatorLink final : public ControlLink {
  public:
    CoordinatorLink(ControlClientOptions options, const Clock& clock);

    void send(const Report& report) override { client().send(report); }
    std::optional<View> receive() override;
    Milliseconds silence() const;  // for how long nothing has come

  private:
    ControlClient& client();

    ControlClientOptions options_;
    const Clock& clock_;
    std::atomic<TimePoint> last_heard_;
    std::optional<ControlClient> client_;
};

}  // namespace atl
