#include "engine/executor.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>

#include <algorithm>
#include <set>
#include <thread>

#include "comm/island/gloo_collective.h"
#include "core/check.h"
#include "core/error.h"
#include "engine/allocation_counter.h"
#include "engine/bind.h"
#include "engine/step_progress.h"
#include "program/dependencies.h"

namespace atl {
namespace {

// A failing collective names the rank it waited for; the executor's own wait, which can't, gives it time to.
constexpr Milliseconds kCollectiveGrace{5'000};

struct BoundOp {
    const Op* op = nullptr;
    BoundCall call;
    std::vector<OpId> waits;  // ops of other resources
    bool is_awaited = false;  // by an op of another resource
    StepShare share = StepShare::forward;
};

bool is_link(Resource resource) {
    return resource == Resource::link_intra || resource == Resource::link_inter;
}

// Everything up to a micro-batch's loss is forward, what follows is backward; what belongs to no micro-batch is the
// optimizer. Recomputation counts as backward.
std::vector<StepShare> shares_of(const Program& program) {
    std::set<std::int32_t> past_loss;
    std::vector<StepShare> shares;
    for (const Op& op : program.ops) {
        if (is_link(op.resource)) {
            shares.push_back(StepShare::communication);
        } else if (op.micro_batch < 0) {
            shares.push_back(StepShare::optimizer);
        } else {
            shares.push_back(past_loss.contains(op.micro_batch) ? StepShare::backward : StepShare::forward);
        }
        if (op.kind == OpKind::cross_entropy) past_loss.insert(op.micro_batch);
    }
    return shares;
}

double seconds_between(TimePoint begin, TimePoint end) {
    return seconds(end - begin);
}

}  // namespace

struct Executor::State {
    State(const Program& program, const ProgramMemory& memory, ExecutorOptions options)
        : program(program),
          options(std::move(options)),
          progress(program.ops.size(), this->options.collective_timeout + kCollectiveGrace) {
        bind(memory);
        for (const auto& [resource, ops] : queues) {
            if (is_link(resource))
                links.emplace_back([this, &ops](std::stop_token stop) { run_link(ops, stop); });
        }
    }

    void bind(const ProgramMemory& memory) {
        at::set_num_threads(options.threads);
        omp_set_num_threads(options.threads);
        const c10::InferenceMode guard;
        const auto edges = data_edges(program);
        const auto shares = shares_of(program);
        bound.resize(program.ops.size());
        for (const Op& op : program.ops) {
            BoundOp& b = bound[op.id.value()];
            b.op = &op;
            b.share = shares[op.id.value()];
            b.call = is_link(op.resource) ? bind_collective(op, memory)
                                          : bind_op(BoundOperands(program, memory, op, options.threads));
            b.waits = edges[op.id.value()];
            b.waits.insert(b.waits.end(), op.after.begin(), op.after.end());
            std::erase_if(b.waits, [&](OpId other) { return program.op(other).resource == op.resource; });
            for (const OpId other : b.waits) bound[other.value()].is_awaited = true;
            queues[op.resource].push_back(&b);
        }
        for (const auto& [resource, ops] : queues) {
            ATOLL_CHECK(resource == Resource::compute || is_link(resource), "no {} queue on processors",
                        name(resource));
        }
    }

    BoundCall bind_collective(const Op& op, const ProgramMemory& memory) {
        const auto& attributes = std::get<CollectiveAttributes>(op.attributes);
        const auto group = options.groups.find(attributes.group);
        ATOLL_CHECK(group != options.groups.end(), "no collective for group '{}'", attributes.group);
        IslandCollective* collective = group->second;
        ATOLL_CHECK_EQ(static_cast<std::int64_t>(collective->size()),
                       static_cast<std::int64_t>(program.groups.at(attributes.group).size()));
        const BufferView read = memory.view(op.reads.at(0));
        const BufferView written = memory.view(op.writes.at(0));
        const Milliseconds timeout = options.collective_timeout;
        const auto rows = [&](ValueId whole) { return program.value(whole).shape.at(0); };
        switch (op.kind) {
            case OpKind::all_reduce:
                return [=] { collective->all_reduce(written, timeout); };
            case OpKind::all_reduce_max:
                return [=] { collective->all_reduce_max(written, timeout); };
            case OpKind::all_gather:
                return [=, rows = rows(op.writes.at(0))] {
                    collective->all_gather_rows(read, written, rows, timeout);
                };
            case OpKind::reduce_scatter:
                return [=, rows = rows(op.reads.at(0))] {
                    collective->reduce_scatter_rows(read, written, rows, timeout);
                };
            case OpKind::broadcast:
                return [=] { collective->broadcast(written, Rank(0), timeout); };
            default:
                break;
        }
        ATOLL_CHECK(false, "{} is no collective", name(op.kind));
        return {};
    }

    // Runs one op of either kind of thread; a world's failure gets the op's name.
    void call(const BoundOp& b) {
        try {
            b.call();
        } catch (const CommError& error) {
            throw CommError(fmt::format("[engine] rank {} op {} {} (layer {}, micro-batch {}): {}",
                                        program.rank, b.op->id, name(b.op->kind), b.op->layer,
                                        b.op->micro_batch, error.what()));
        }
        progress.finish(b.op->id, b.is_awaited);
    }

    void run_compute() {
        const c10::InferenceMode guard;
        TimePoint before = clock.now();
        const TimePoint begin = before;
        for (const BoundOp* b : queues[Resource::compute]) {
            if (!b->waits.empty()) {
                for (const OpId other : b->waits) progress.wait_for(other);
                const TimePoint resumed = clock.now();
                add_share(StepShare::communication, seconds_between(before, resumed));
                before = resumed;
            }
            {
                const CountAllocations scope(allocation_counts[b->op->kind]);
                call(*b);
            }
            const TimePoint after = clock.now();
            add_share(b->share, seconds_between(before, after));
            times.kind_seconds[b->op->kind] += seconds_between(before, after);
            before = after;
        }
        progress.wait_for_all_links(links.size());
        const TimePoint end = clock.now();
        add_share(StepShare::communication, seconds_between(before, end));
        times.step_seconds += seconds_between(begin, end);
        times.steps += 1;
    }

    void add_share(StepShare share, double duration) {
        times.share_seconds[static_cast<std::size_t>(share)] += duration;
    }

    // A link thread: runs its queue once for each step that begins.
    void run_link(const std::vector<BoundOp*>& ops, std::stop_token stop) {
        std::int64_t steps_seen = 0;
        while (true) {
            {
                std::unique_lock lock(step_mutex);
                if (!step_begun.wait(lock, stop, [&] { return steps_begun > steps_seen; })) return;
                ++steps_seen;
            }
            try {
                for (const BoundOp* b : ops) {
                    for (const OpId other : b->waits) progress.wait_for(other);
                    const TimePoint begin = clock.now();
                    call(*b);
                    std::lock_guard lock(step_mutex);
                    const double duration = seconds_between(begin, clock.now());
                    link_busy_seconds += duration;
                    link_kind_seconds[b->op->kind] += duration;
                }
            } catch (...) {
                progress.fail(std::current_exception());
            }
            progress.finish_link();
        }
    }

    const Program& program;
    ExecutorOptions options;
    SystemClock clock;
    std::vector<BoundOp> bound;                        // [op]
    std::map<Resource, std::vector<BoundOp*>> queues;  // in issue order
    StepProgress progress;
    StepTimes times;  // but for what the link threads add
    std::map<OpKind, AllocationCount> allocation_counts;

    std::mutex step_mutex;
    std::condition_variable_any step_begun;
    std::int64_t steps_begun = 0;
    double link_busy_seconds = 0;
    std::map<OpKind, double> link_kind_seconds;
    std::vector<std::jthread> links;  // last, so that they end first
};

Executor::Executor(const Program& program, const ProgramMemory& memory, ExecutorOptions options)
    : state_(std::make_unique<State>(program, memory, std::move(options))) {}

Executor::~Executor() = default;

void Executor::run() {
    State& s = *state_;
    if (const auto failure = s.progress.failure()) std::rethrow_exception(failure);
    s.progress.begin_step();
    {
        std::lock_guard lock(s.step_mutex);
        ++s.steps_begun;
    }
    s.step_begun.notify_all();
    try {
        s.run_compute();
    } catch (const StepFailed&) {
        std::rethrow_exception(s.progress.failure());
    } catch (...) {
        s.progress.fail(std::current_exception());
        std::rethrow_exception(s.progress.failure());
    }
}

StepTimes Executor::times() const {
    std::lock_guard lock(state_->step_mutex);
    StepTimes times = state_->times;
    times.link_busy_seconds = state_->link_busy_seconds;
    for (const auto& [kind, duration] : state_->link_kind_seconds) times.kind_seconds[kind] += duration;
    return times;
}

void Executor::reset_times() {
    std::lock_guard lock(state_->step_mutex);
    state_->times = {};
    state_->link_busy_seconds = 0;
    state_->link_kind_seconds.clear();
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
