#include "engine/executor.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <set>
#include <thread>

#include "comm/island/gloo_collective.h"
#include "core/check.h"
#include "core/error.h"
#include "core/random.h"
#include "core/short_time_slice.h"
#include "engine/allocation_counter.h"
#include "engine/bound_program.h"
#include "engine/step_progress.h"

namespace atl {
namespace {

// A failing collective names the rank it waited for; the executor's own wait, which can't, gives it time to.
constexpr Milliseconds kCollectiveGrace{5'000};

bool is_link(Resource resource) {
    return resource == Resource::link_intra || resource == Resource::link_inter;
}

}  // namespace

struct Executor::State {
    State(const Program& program, const ProgramMemory& memory, ExecutorOptions options)
        : program(program),
          options(std::move(options)),
          bound(program, memory, this->options),
          progress(program.ops.size(), this->options.collective_timeout + kCollectiveGrace),
          op_times(program.ops.size()) {
        if (this->options.mode == ExecutionMode::serial) return;
        for (const auto& [resource, ops] : bound.queues) {
            if (resource == Resource::compute) continue;
            start_thread([this, &ops = ops](std::int64_t step) { run_queue(ops, step); });
            if (posts_ahead(resource))
                start_thread([this, &ops = ops](std::int64_t step) { post_queue(ops, step); });
        }
    }

    // ---- a step ----

    void run_step() {
        progress.begin_step();
        begin = clock.now();
        std::int64_t step = 0;
        {
            std::lock_guard lock(step_mutex);
            step = ++steps_begun;
        }
        step_begun.notify_all();
        try {
            const c10::InferenceMode guard;
            if (options.mode == ExecutionMode::serial) {
                run_serially(step);
            } else {
                run_compute(step);
            }
        } catch (...) {
            fail(std::current_exception());
            std::rethrow_exception(progress.failure());
        }
        add_times();
    }

    // The calling thread's part: the compute ops.
    void run_compute(std::int64_t step) {
        for (const BoundOp* b : bound.queues[Resource::compute]) {
            for (const OpId other : b->waits) progress.wait_for(other);
            pause_before(*b, step);
            compute(*b);
        }
        progress.wait_for_all_queues(std::ssize(threads));
    }

    // Everything in list order on one thread. Sends are only posted, until someone waits for their end.
    void run_serially(std::int64_t step) {
        const auto& sends = bound.queues[Resource::send];
        std::size_t sends_ended = 0;
        const auto end_sends_up_to = [&](OpId last) {
            for (; sends_ended < sends.size() && sends[sends_ended]->op->id <= last; ++sends_ended)
                finish(*sends[sends_ended]);
        };
        for (const BoundOp& b : bound.ops) {
            for (const OpId other : b.waits)
                if (program.op(other).resource == Resource::send) end_sends_up_to(other);
            pause_before(b, step);
            if (b.post) post(b);
            if (b.op->resource == Resource::compute) {
                compute(b);
            } else if (is_link(b.op->resource)) {
                start(b);
                finish(b);
            } else if (b.op->kind == OpKind::receive) {
                finish(b);
            }
        }
        if (!sends.empty()) end_sends_up_to(sends.back()->op->id);
    }

    // A queue's thread: its ops one after the other; sends and receives have been started by another one.
    void run_queue(const std::vector<const BoundOp*>& ops, std::int64_t step) {
        for (const BoundOp* b : ops) {
            if (b->post) {
                progress.wait_for_post(b->op->id);
            } else {
                for (const OpId other : b->waits) progress.wait_for(other);
                start(*b);
            }
            pause_before(*b, step);
            finish(*b);
        }
    }

    void post_queue(const std::vector<const BoundOp*>& ops, std::int64_t step) {
        for (const BoundOp* b : ops) {
            for (const OpId other : b->waits) progress.wait_for(other);
            pause_before(*b, step);
            post(*b);
        }
    }

    // ---- an op ----

    OpTime& time_of(const BoundOp& b) { return op_times[static_cast<std::size_t>(b.op->id.value())]; }
    double seconds_since_begin() const { return seconds(clock.now() - begin); }

    void compute(const BoundOp& b) {
        const CountAllocations scope(allocation_counts[b.op->kind]);
        start(b);
        finish(b);
    }
    void start(const BoundOp& b) { time_of(b).start_seconds = seconds_since_begin(); }
    void finish(const BoundOp& b) {
        call_naming(b, b.call);
        time_of(b).end_seconds = seconds_since_begin();
        progress.finish(b.op->id, b.is_awaited);
    }
    void post(const BoundOp& b) {
        start(b);
        call_naming(b, b.post);
        progress.post(b.op->id);
    }

    // The world's failure gets the op's name.
    void call_naming(const BoundOp& b, const BoundCall& call) {
        try {
            call();
        } catch (const CommError& error) {
            throw CommError(fmt::format("[engine] rank {} op {} {}{} (layer {}, micro-batch {}): {}",
                                        program.rank, b.op->id, name(b.op->kind), towards_peer(*b.op),
                                        b.op->layer, b.op->micro_batch, error.what()));
        }
    }
    static std::string towards_peer(const Op& op) {
        const auto* message = std::get_if<PointToPointAttributes>(&op.attributes);
        if (message == nullptr) return "";
        return fmt::format(" {} rank {}", op.kind == OpKind::send ? "to" : "from", message->peer);
    }

    void pause_before(const BoundOp& b, std::int64_t step) const {
        if (!options.delays) return;
        const RandomStream random(options.delays->seed, static_cast<std::uint64_t>(step));
        const auto choices = static_cast<std::uint64_t>(options.delays->longest.count()) + 1;
        std::this_thread::sleep_for(
            std::chrono::microseconds(random.below(static_cast<std::uint64_t>(b.op->id.value()), choices)));
    }

    // ---- threads ----

    // One that calls body(step) for each step that begins.
    template <class Body>
    void start_thread(Body body) {
        threads.emplace_back([this, body](std::stop_token stop) {
            const ShortTimeSlice prompt;
            std::int64_t steps_seen = 0;
            while (true) {
                {
                    std::unique_lock lock(step_mutex);
                    if (!step_begun.wait(lock, stop, [&] { return steps_begun > steps_seen; })) return;
                    ++steps_seen;
                }
                try {
                    body(steps_seen);
                } catch (...) {
                    fail(std::current_exception());
                }
                progress.finish_queue();
            }
        });
    }

    // The first failure is the step's. Giving up the groups ends the waits of this rank's other threads as well.
    void fail(std::exception_ptr error) {
        std::string why = "it met an error";
        try {
            std::rethrow_exception(error);
        } catch (const StepFailed&) {
            return;
        } catch (const std::exception& known) {
            why = known.what();
        } catch (...) {
        }
        if (!progress.fail(error)) return;
        std::set<IslandCollective*> groups;
        for (const auto& [group, collective] : options.groups) groups.insert(collective);
        for (IslandCollective* group : groups) group->give_up(why);
        if (options.point_to_point != nullptr) options.point_to_point->give_up(why);
    }

    // ---- what a step took ----

    void add_times() {
        const double step_seconds = seconds_since_begin();
        double compute_seconds = 0;
        for (const BoundOp& b : bound.ops) {
            const double duration = time_of(b).end_seconds - time_of(b).start_seconds;
            if (b.post) continue;
            times.kind_seconds[b.op->kind] += duration;
            if (b.share == StepShare::communication) {
                times.link_busy_seconds += duration;
            } else {
                times.share_seconds[static_cast<std::size_t>(b.share)] += duration;
                compute_seconds += duration;
            }
        }
        times.share_seconds[static_cast<std::size_t>(StepShare::communication)] +=
            step_seconds - compute_seconds;
        times.step_seconds += step_seconds;
        times.steps += 1;
    }

    const Program& program;
    ExecutorOptions options;
    SystemClock clock;
    BoundProgram bound;
    StepProgress progress;
    TimePoint begin;  // of the step
    std::vector<OpTime> op_times;
    StepTimes times;
    std::map<OpKind, AllocationCount> allocation_counts;

    std::mutex step_mutex;
    std::condition_variable_any step_begun;
    std::int64_t steps_begun = 0;
    std::vector<std::jthread> threads;  // last, so that they end before what they use
};

Executor::Executor(const Program& program, const ProgramMemory& memory, ExecutorOptions options)
    : state_(std::make_unique<State>(program, memory, std::move(options))) {}

Executor::~Executor() = default;

void Executor::run() {
    if (const auto failure = state_->progress.failure()) std::rethrow_exception(failure);
    state_->run_step();
}

StepTimes Executor::times() const {
    return state_->times;
}

void Executor::reset_times() {
    state_->times = {};
}

const std::vector<OpTime>& Executor::op_times() const {
    return state_->op_times;
}

TimePoint Executor::step_begin() const {
    return state_->begin;
}

StepAllocations Executor::allocations() const {
    StepAllocations all;
    for (const auto& [kind, counted] : state_->allocation_counts) {
        all.count += counted.count;
        all.peak_bytes = std::max(all.peak_bytes, counted.peak_bytes);
        if (counted.count > 0) all.count_by_kind[kind] = counted.count;
    }
    return all;
}

void check_gloo_library() {
    const std::string path = gloo_library_path();
    ATOLL_CHECK(path.find("libgloo") != std::string::npos,
                "gloo:: comes from {}: link Debian's libgloo before libtorch_cpu", path);
}

}  // namespace atl
