#include "engine/step_progress.h"

#include <fmt/format.h>

#include "core/error.h"

namespace atl {

StepProgress::StepProgress(std::size_t ops, Milliseconds patience)
    : done_in_(ops), posted_in_(ops), patience_(patience) {}

void StepProgress::begin_step() {
    ++step_;
    queues_finished_ = 0;
}

void StepProgress::finish(OpId op, bool is_awaited) {
    finished_ops_.fetch_add(1, std::memory_order_relaxed);
    if (is_awaited) mark(done_in_, op);
}

void StepProgress::post(OpId op) {
    mark(posted_in_, op);
}

void StepProgress::finish_queue() {
    ++queues_finished_;
    wake_sleepers();
}

void StepProgress::mark(std::vector<Counter>& last_steps, OpId op) {
    last_steps[static_cast<std::size_t>(op.value())] = step_;
    wake_sleepers();
}

// Whoever goes to sleep counts itself before it looks for the last time, and the counter was written before this looks
// for sleepers: one of the two sees the other.
void StepProgress::wake_sleepers() {
    if (sleeper_count_ == 0) return;
    std::lock_guard lock(mutex_);
    for (Sleeper* sleeper : sleepers_)
        if (failed_ || sleeper->may_wake()) sleeper->wake.notify_one();
}

void StepProgress::wait_until(const Counter& counter, std::int64_t awaited, const char* what,
                              std::int64_t number) {
    if (counter != awaited && !failed_) {
        std::unique_lock lock(mutex_);
        Sleeper sleeper{counter, awaited, {}};
        sleepers_.push_back(&sleeper);
        ++sleeper_count_;
        const auto over = [&] { return failed_ || sleeper.may_wake(); };
        bool in_vain = false;
        while (!in_vain && !over()) {
            const std::int64_t before = finished_ops_.load(std::memory_order_relaxed);
            in_vain = !sleeper.wake.wait_for(lock, patience_, over) &&
                      finished_ops_.load(std::memory_order_relaxed) == before;
        }
        --sleeper_count_;
        std::erase(sleepers_, &sleeper);
        if (in_vain)
            throw CommError(fmt::format("[engine] waited for {} {} while no op ended for {} ms", what, number,
                                        patience_.count()));
    }
    if (failed_) throw StepFailed("another op of the step failed");
}

void StepProgress::wait_for(OpId op) {
    wait_until(done_in_[static_cast<std::size_t>(op.value())], step_, "op", op.value());
}

void StepProgress::wait_for_post(OpId op) {
    wait_until(posted_in_[static_cast<std::size_t>(op.value())], step_, "the post of op", op.value());
}

void StepProgress::wait_for_all_queues(std::int64_t queues) {
    wait_until(queues_finished_, queues, "queues, all of", queues);
}

bool StepProgress::fail(std::exception_ptr error) {
    bool is_first = false;
    {
        std::lock_guard lock(mutex_);
        is_first = failure_ == nullptr;
        if (is_first) failure_ = std::move(error);
        failed_ = true;
    }
    wake_sleepers();
    return is_first;
}

std::exception_ptr StepProgress::failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
}

}  // namespace atl
