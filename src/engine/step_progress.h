// What the threads of an executor tell each other during a step: which ops are posted and done, and whether one failed.
//
// A wait sleeps at once and is woken only by what it waits for. The threads of a rank share its processors, and mostly
// the one it is pinned to: looking before sleeping, or yielding, would only keep it from those that are waited for.
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
    StepProgress(std::size_t ops, Milliseconds patience);

    void begin_step();
    // Once a step, for ops that another thread waits for; cheap for the others.
    void finish(OpId op, bool is_awaited);
    void wait_for(OpId op);
    void post(OpId op);  // of sends and receives
    void wait_for_post(OpId op);
    void wait_for_all_queues(std::int64_t queues);  // until so many threads have finished their ops
    void finish_queue();

    // Keeps the failure if it is the first of all, and says whether it is.
    bool fail(std::exception_ptr error);
    std::exception_ptr failure() const;

  private:
    using Counter = std::atomic<std::int64_t>;
    struct Sleeper {
        const Counter& counter;
        std::int64_t awaited;
        std::condition_variable wake;

        bool may_wake() const { return counter == awaited; }
    };

    void mark(std::vector<Counter>& last_steps, OpId op);
    void wait_until(const Counter& counter, std::int64_t awaited, const char* what, std::int64_t number);
    void wake_sleepers();

    std::int64_t step_ = 0;
    std::vector<Counter> done_in_;    // [op]: the last step it was done in
    std::vector<Counter> posted_in_;  // [op]
    Counter queues_finished_{0};
    Counter finished_ops_{0};  // of all threads: a sign of life
    std::atomic<bool> failed_{false};
    std::atomic<int> sleeper_count_{0};
    mutable std::mutex mutex_;  // guards what follows
    std::vector<Sleeper*> sleepers_;
    std::exception_ptr failure_;
    Milliseconds patience_;
};

}  // namespace atl
