// The way to the coordinator, as far as whoever speaks for a site needs it. Neither call blocks or throws. Threads: one.
#pragma once

#include <optional>

#include "rounds/control.h"

namespace atl {

class ControlLink {
  public:
    virtual ~ControlLink() = default;
    virtual void send(const Report& report) = 0;
    virtual std::optional<View> receive() = 0;  // the newest that came since the last call
};

}  // namespace atl
