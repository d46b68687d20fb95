// When an op ran, in seconds from the step's beginning: planned by the virtual executor, or measured by a real one.
//
// A send or a receive ends when those that wait for it may go on. It starts with its transfer where that is known, that
// is in a plan, and with its post where it was measured.
#pragma once

namespace atl {

struct OpTime {
    double start_seconds = 0;
    double end_seconds = 0;
    bool operator==(const OpTime&) const = default;
};

}  // namespace atl
