#include "engine/step_progress.h"

#include <fmt/format.h>

#include "core/error.h"

namespace atl {

void StepProgress::begin_step() {
    std::lock_guard lock(mutex_);
    std::fill(done_.begin(), done_.end(), false);
    links_finished_ = 0;
}

void StepProgress::finish(OpId op, bool is_awaited) {
    finished_ops_.fetch_add(1, std::memory_order_relaxed);
    if (!is_awaited) return;
    {
        std::lock_guard lock(mutex_);
        done_[static_cast<std::size_t>(op.value())] = true;
    }
    changed_.notify_all();
}

void StepProgress::finish_link() {
    {
        std::lock_guard lock(mutex_);
        ++links_finished_;
    }
    changed_.notify_all();
}

template <class Condition>
void StepProgress::wait_until(Condition condition, const std::string& what) {
    std::unique_lock lock(mutex_);
    while (true) {
        const std::int64_t before = finished_ops_.load(std::memory_order_relaxed);
        if (changed_.wait_for(lock, patience_, [&] { return failure_ != nullptr || condition(); })) break;
        if (finished_ops_.load(std::memory_order_relaxed) != before) continue;
        throw CommError(
            fmt::format("[engine] waited for {} while no op ended for {} ms", what, patience_.count()));
    }
    if (failure_ != nullptr) throw StepFailed("another op of the step failed");
}

void StepProgress::wait_for(OpId op) {
    wait_until([&] { return done_[static_cast<std::size_t>(op.value())]; }, fmt::format("op {}", op));
}

void StepProgress::wait_for_all_links(std::size_t links) {
    wait_until([&] { return links_finished_ == links; }, "the collectives");
}

void StepProgress::fail(std::exception_ptr error) {
    {
        std::lock_guard lock(mutex_);
        if (failure_ == nullptr) failure_ = std::move(error);
    }
    changed_.notify_all();
}

std::exception_ptr StepProgress::failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
}

}  // namespace atl
