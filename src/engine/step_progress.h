// What the threads of an executor tell each other during a step: which ops are posted and done, and whether one failed.
//
// Waits look for a moment before they sleep: what is waited for often comes within microseconds, and falling asleep and
// waking up costs more.
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
    using LastSteps = std::vector<std::atomic<std::int64_t>>;

    void mark(LastSteps& last_steps, OpId op);
    void wait_for_mark(const LastSteps& last_steps, OpId op, const char* what);
    template <class Condition>
    void wait_until(Condition condition, const char* what, std::int64_t number);
    void wake_sleepers();

    std::int64_t step_ = 0;
    LastSteps done_in_;    // [op]: the last step it was done in
    LastSteps posted_in_;  // [op]
    std::atomic<std::int64_t> queues_finished_{0};
    std::atomic<std::int64_t> finished_ops_{0};  // of all threads: a sign of life
    std::atomic<bool> failed_{false};
    std::atomic<int> sleepers_{0};
    mutable std::mutex mutex_;  // guards the sleep and the failure
    std::condition_variable changed_;
    std::exception_ptr failure_;
    Milliseconds patience_;
};

}  // namespace atl
