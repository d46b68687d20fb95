// SIGTERM as a flag that anybody may look at. Construct it first thing in main: threads made later inherit the
// blocked signal. Threads: one of its own, which ends with the object.
#pragma once

#include <atomic>
#include <thread>

namespace atl {

class TerminationSignal {
  public:
    TerminationSignal();
    const std::atomic<bool>& raised() const { return raised_; }

  private:
    std::atomic<bool> raised_ = false;
    std::jthread watcher_;
};

}  // namespace atl
