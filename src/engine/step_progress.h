// What the threads of an executor tell each other during a step: which ops are done, and whether one failed.
//
// Threads: all calls from any of the executor's threads, begin_step while no op runs.
// Errors: a wait throws StepFailed once any op has failed, and CommError when nothing at all got done for as long
// as the patience given at construction.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "core/clock.h"
#include "program/op.h"

namespace atl {

// Another op's failure ended the step; the first failure is kept in the progress.
class StepFailed : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class StepProgress {
  public:
    StepProgress(std::size_t ops, Milliseconds patience) : done_(ops, false), patience_(patience) {}

    void begin_step();
    // Once a step, for ops that another thread waits for; cheap for the others.
    void finish(OpId op, bool is_awaited);
    void wait_for(OpId op);
    void wait_for_all_links(std::size_t links);  // until so many link threads have finished their ops
    void finish_link();

    void fail(std::exception_ptr error);  // the first one counts
    std::exception_ptr failure() const;

  private:
    template <class Condition>
    void wait_until(Condition condition, const std::string& what);

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bool> done_;
    std::size_t links_finished_ = 0;
    std::atomic<std::int64_t> finished_ops_{0};  // of all threads: a sign of life
    std::exception_ptr failure_;
    Milliseconds patience_;
};

}  // namespace atl
