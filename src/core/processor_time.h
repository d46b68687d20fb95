// Processor time that threads of this process have used.
#pragma once

namespace atl {

// Seconds, of all threads but the calling one.
double processor_seconds_beside_this_thread();

}  // namespace atl
