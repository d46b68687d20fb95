#include "program/strand_pair.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "program/dependencies.h"

namespace atl {
namespace {

// Numbers of ops in the pair; -1 for those that aren't in it.
std::vector<std::int32_t> number_ops(const Program& program, const StrandPair& pair) {
    std::vector<std::int32_t> numbers(program.ops.size(), -1);
    for (std::size_t i = 0; i < pair.ops.size(); ++i)
        numbers[static_cast<std::size_t>(pair.ops[i].id.value())] = static_cast<std::int32_t>(i);
    return numbers;
}

void add_edges(const Program& program, const std::vector<std::int32_t>& numbers, StrandPair& pair) {
    const auto edges = data_edges(program);
    std::vector<bool> awaited(pair.ops.size(), false);
    for (auto& op : pair.ops)
        for (const auto earlier : edges[static_cast<std::size_t>(op.id.value())]) {
            const auto number = numbers[static_cast<std::size_t>(earlier.value())];
            if (number < 0) continue;
            op.waits_for.push_back(number);
            awaited[static_cast<std::size_t>(number)] = true;
            if (pair.ops[static_cast<std::size_t>(number)].strand != op.strand) pair.shares_writes = true;
        }
    for (std::size_t i = 0; i < pair.ops.size(); ++i)
        pair.ops[i].movable = !awaited[i] &&
                              program.op(pair.ops[i].id).kind == OpKind::linear_backward_weight &&
                              !pair.ops[i].communicates();
}

void add_values(const Program& program, const std::vector<std::int32_t>& numbers, StrandPair& pair) {
    struct Touches {
        PairValue value;
        OpId last_here{-1}, last{-1};
    };
    std::map<ValueId, Touches> touches;
    for (const auto& op : program.ops) {
        const auto number = numbers[static_cast<std::size_t>(op.id.value())];
        const auto touch = [&](ValueId id, bool writes) {
            const auto base = program.resolve(id).base;
            if (program.value(base).role != Role::activation) return;
            auto& entry = touches[base];
            const bool is_new = entry.last == OpId(-1);
            entry.last = op.id;
            if (number < 0) return;
            entry.last_here = op.id;
            entry.value.bytes = program.value(base).bytes();
            if (writes && is_new) entry.value.written_by = number;
            auto& list = entry.value.touched_by;
            if (list.empty() || list.back() != number) list.push_back(number);
        };
        for (const auto id : op.reads) touch(id, false);
        for (const auto id : op.writes) touch(id, true);
    }
    for (auto& [id, entry] : touches) {
        entry.value.dies = entry.last == entry.last_here;
        const bool changes = entry.value.dies || entry.value.written_by >= 0;
        if (!entry.value.touched_by.empty() && changes) pair.values.push_back(std::move(entry.value));
    }
}

}  // namespace

StrandPair make_strand_pair(const Program& program, const LayerOps& first, const LayerOps& second,
                            const std::vector<double>& seconds) {
    StrandPair pair;
    const auto add = [&](const LayerOps& layers, std::int32_t strand) {
        for (const auto& layer : layers)
            for (const auto id : layer) {
                const Op& op = program.op(id);
                const double alone =
                    op.kind == OpKind::send ? 0 : seconds[static_cast<std::size_t>(id.value())];
                pair.ops.push_back({.id = id,
                                    .strand = strand,
                                    .op_class = class_of(op),
                                    .seconds = alone,
                                    .waits_for = {},
                                    .movable = false});
            }
    };
    add(first, 0);
    pair.first_ops = pair.ops.size();
    add(second, 1);
    const auto numbers = number_ops(program, pair);
    add_edges(program, numbers, pair);
    add_values(program, numbers, pair);
    return pair;
}

std::int64_t peak_bytes(const StrandPair& pair, std::span<const std::int32_t> order) {
    std::vector<std::int32_t> position(pair.ops.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i)
        position[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
    std::vector<std::int64_t> change(order.size() + 1, 0);  // [i]: when the i-th op starts
    for (const auto& value : pair.values) {
        if (value.written_by >= 0)
            change[static_cast<std::size_t>(position[static_cast<std::size_t>(value.written_by)])] +=
                value.bytes;
        std::int32_t last = 0;
        for (const auto op : value.touched_by) last = std::max(last, position[static_cast<std::size_t>(op)]);
        if (value.dies) change[static_cast<std::size_t>(last) + 1] -= value.bytes;
    }
    std::int64_t live = 0, peak = 0;
    for (const auto bytes : change) peak = std::max(peak, live += bytes);
    return peak;
}

double serial_seconds(const StrandPair& pair) {
    double sum = 0;
    for (const auto& op : pair.ops) sum += op.seconds;
    return sum;
}

double busiest_seconds(const StrandPair& pair) {
    std::array<double, kResources> busy{};
    for (const auto& op : pair.ops) busy[static_cast<std::size_t>(op.op_class.resource)] += op.seconds;
    return std::ranges::max(busy);
}

StrandClock::StrandClock(const StrandPair& pair, const OverlapModel& overlap)
    : pair_(pair), issued_(pair.ops.size(), 0), ended_(pair.ops.size(), 0) {
    std::vector<OpClass> classes;
    for (const auto& op : pair.ops) {
        const auto found = std::ranges::find(classes, op.op_class);
        class_of_op_.push_back(static_cast<std::int32_t>(found - classes.begin()));
        if (found == classes.end()) classes.push_back(op.op_class);
    }
    classes_ = classes.size();
    for (const auto& slowed : classes)
        for (const auto& other : classes) slowdowns_.push_back(overlap.slowdown(slowed, other));
}

bool StrandClock::is_ready(std::int32_t op) const {
    for (const auto earlier : pair_.ops[static_cast<std::size_t>(op)].waits_for) {
        const auto index = static_cast<std::size_t>(earlier);
        if (issued_[index] == run_number_ && ended_[index] != run_number_) return false;
    }
    return true;
}

bool StrandClock::start_ready_ops() {
    bool started = false;
    for (auto& engine : engines_) {
        while (engine.running < 0 && engine.next < engine.queue.size() &&
               is_ready(engine.queue[engine.next])) {
            const auto op = engine.queue[engine.next++];
            const double seconds = pair_.ops[static_cast<std::size_t>(op)].seconds;
            started = true;
            if (seconds > 0) {
                engine.running = op;
                engine.work_left = seconds;
            } else {
                ended_[static_cast<std::size_t>(op)] = run_number_;
            }
        }
    }
    return started;
}

void StrandClock::set_rates() {
    for (auto& engine : engines_) {
        if (engine.running < 0) continue;
        engine.rate = 1;
        const auto mine = static_cast<std::size_t>(class_of_op_[static_cast<std::size_t>(engine.running)]);
        for (const auto& other : engines_)
            if (&other != &engine && other.running >= 0)
                engine.rate /=
                    slowdowns_[mine * classes_ + static_cast<std::size_t>(
                                                     class_of_op_[static_cast<std::size_t>(other.running)])];
    }
}

double StrandClock::run(std::span<const std::int32_t> order, double bound) {
    ++run_number_;
    for (auto& engine : engines_) {
        engine.queue.clear();
        engine.next = 0;
    }
    for (const auto op : order) {
        const auto index = static_cast<std::size_t>(op);
        issued_[index] = run_number_;
        engines_[static_cast<std::size_t>(pair_.ops[index].op_class.resource)].queue.push_back(op);
    }
    double now = 0;
    while (true) {
        // An op without duration may make one ready on an engine that has been looked at.
        while (start_ready_ops()) {
        }
        set_rates();
        double next = std::numeric_limits<double>::infinity();
        for (const auto& engine : engines_)
            if (engine.running >= 0) next = std::min(next, engine.work_left / engine.rate);
        if (next == std::numeric_limits<double>::infinity()) break;
        now += next;
        if (now > bound) {
            for (auto& engine : engines_) engine.running = -1;
            return now;
        }
        for (auto& engine : engines_) {
            if (engine.running < 0) continue;
            const double left = engine.work_left / engine.rate - next;
            if (left <= 1e-12 * next) {
                ended_[static_cast<std::size_t>(engine.running)] = run_number_;
                engine.running = -1;
            } else {
                engine.work_left = left * engine.rate;
            }
        }
    }
    for (const auto& engine : engines_)
        ATOLL_CHECK_EQ(engine.next, engine.queue.size(), "a strand's op waits for one behind it");
    return now;
}

}  // namespace atl
