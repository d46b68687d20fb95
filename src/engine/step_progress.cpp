#include "engine/step_progress.h"

#include <fmt/format.h>
#include <sched.h>

#include "core/error.h"

namespace atl {
namespace {

// Looks before sleeping, each with the processor offered to others: ranks share cores with their own link threads.
constexpr int kLooks = 20;

}  // namespace

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

void StepProgress::mark(LastSteps& last_steps, OpId op) {
    last_steps[static_cast<std::size_t>(op.value())] = step_;
    wake_sleepers();
}

void StepProgress::finish_queue() {
    ++queues_finished_;
    wake_sleepers();
}

// Whoever goes to sleep counts itself before it looks for the last time, and what it looks for was written before this
// looks for sleepers: one of the two sees the other.
void StepProgress::wake_sleepers() {
    if (sleepers_ == 0) return;
    { std::lock_guard lock(mutex_); }  // it is asleep now, or will look again
    changed_.notify_all();
}

template <class Condition>
void StepProgress::wait_until(Condition condition, const char* what, std::int64_t number) {
    const auto over = [&] { return failed_ || condition(); };
    for (int look = 0; !over() && look < kLooks; ++look) ::sched_yield();
    if (!over()) {
        std::unique_lock lock(mutex_);
        ++sleepers_;
        while (!over()) {
            const std::int64_t before = finished_ops_.load(std::memory_order_relaxed);
            if (changed_.wait_for(lock, patience_, over)) break;
            if (finished_ops_.load(std::memory_order_relaxed) != before) continue;
            --sleepers_;
            throw CommError(fmt::format("[engine] waited for {} {} while no op ended for {} ms", what, number,
                                        patience_.count()));
        }
        --sleepers_;
    }
    if (failed_) throw StepFailed("another op of the step failed");
}

void StepProgress::wait_for(OpId op) {
    wait_for_mark(done_in_, op, "op");
}

void StepProgress::wait_for_post(OpId op) {
    wait_for_mark(posted_in_, op, "the post of op");
}

void StepProgress::wait_for_mark(const LastSteps& last_steps, OpId op, const char* what) {
    const auto& last_step = last_steps[static_cast<std::size_t>(op.value())];
    wait_until([&] { return last_step == step_; }, what, op.value());
}

void StepProgress::wait_for_all_queues(std::int64_t queues) {
    wait_until([&] { return queues_finished_ == queues; }, "queues, all of", queues);
}

bool StepProgress::fail(std::exception_ptr error) {
    bool is_first = false;
    {
        std::lock_guard lock(mutex_);
        is_first = failure_ == nullptr;
        if (is_first) failure_ = std::move(error);
        failed_ = true;
    }
    changed_.notify_all();
    return is_first;
}

std::exception_ptr StepProgress::failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
}

}  // namespace atl
