#include "program/check_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "program/dependencies.h"
#include "program/text.h"

namespace atl {
namespace {

bool is_index(std::int32_t id, std::size_t count) {
    return id >= 0 && static_cast<std::size_t>(id) < count;
}

class StructureCheck {
  public:
    explicit StructureCheck(const Program& program) : program_(program) {}

    std::vector<std::string> run() {
        std::set<std::string> names;
        for (std::size_t i = 0; i < program_.values.size(); ++i) {
            const Value& value = program_.values[i];
            if (value.id != ValueId(static_cast<std::int32_t>(i)))
                report(fmt::format("value {} stands at place {} but has id {}", value.name, i, value.id));
            if (!names.insert(value.name).second) report(fmt::format("two values are named {}", value.name));
            if (std::ranges::any_of(value.shape, [](std::int64_t extent) { return extent < 0; }))
                report(fmt::format("value {} has a negative extent", value.name));
        }
        for (const auto& value : program_.values) check_view(value);
        for (std::size_t i = 0; i < program_.ops.size(); ++i) check_op(program_.ops[i], i);
        return std::move(problems_);
    }

  private:
    void report(const std::string& problem) {
        problems_.push_back(fmt::format("rank {}: {}", program_.rank, problem));
    }
    void report(const Op& op, const std::string& problem) { report(describe(op) + ": " + problem); }

    void check_view(const Value& value) {
        std::size_t steps = 0;
        std::int64_t offset_elements = 0;
        const Value* base = &value;
        while (base->view_of) {
            if (!is_index(base->view_of->base.value(), program_.values.size()) ||
                ++steps > program_.values.size())
                return report(fmt::format("view {} has no base", value.name));
            offset_elements += base->view_of->offset_elements;
            base = &program_.values[static_cast<std::size_t>(base->view_of->base.value())];
        }
        if (base == &value) return;
        if (base->role != value.role || base->space != value.space || base->dtype != value.dtype)
            report(fmt::format("view {} differs from its base {} in role, space or dtype", value.name,
                               base->name));
        if (offset_elements < 0 || offset_elements + element_count(value.shape) > element_count(base->shape))
            report(fmt::format("view {} reaches outside its base {}", value.name, base->name));
    }

    void check_op(const Op& op, std::size_t place) {
        if (op.id != OpId(static_cast<std::int32_t>(place)))
            report(op, fmt::format("stands at place {}", place));
        for (const auto* ids : {&op.reads, &op.writes})
            for (const auto id : *ids)
                if (!is_index(id.value(), program_.values.size()))
                    report(op, fmt::format("names value {}, which doesn't exist", id));
        for (const auto earlier : op.after)
            if (!is_index(earlier.value(), program_.ops.size()))
                report(op, fmt::format("waits for op {}, which doesn't exist", earlier));
            else if (earlier >= op.id)
                report(op, fmt::format("waits for op {}, which doesn't stand before it", earlier));
        if (op.attributes.index() != default_attributes(op.kind).index())
            report(op, "carries the attributes of another kind");
        const auto expected = signature(op.kind);
        const auto outside = [](std::size_t count, int least, int most) {
            return static_cast<int>(count) < least || static_cast<int>(count) > most;
        };
        if (outside(op.reads.size(), expected.least_reads, expected.most_reads))
            report(op, fmt::format("reads {} values", op.reads.size()));
        if (outside(op.writes.size(), expected.least_writes, expected.most_writes))
            report(op, fmt::format("writes {} values", op.writes.size()));
    }

    const Program& program_;
    std::vector<std::string> problems_;
};

class ValueCheck {
  public:
    explicit ValueCheck(const Program& program) : program_(program), history_(program.values.size()) {}

    std::vector<std::string> run() {
        check_repetition();
        for (const auto& op : program_.ops) {
            for (const auto id : op.reads) check_read(op, id);
            check_overlap_of_writes(op);
            for (const auto id : op.writes) check_write(op, id);
            for (const auto id : op.reads) remember(op, id, false);
            for (const auto id : op.writes) remember(op, id, true);
        }
        return std::move(problems_);
    }

  private:
    struct Touch {
        const Op* op;
        ValueId value;
        ByteRange range;
        bool writes;
    };

    void report(const Op& op, const std::string& problem) {
        problems_.push_back(fmt::format("rank {}: {}: {}", program_.rank, describe(op), problem));
    }
    std::vector<Touch>& history(const ByteRange& range) {
        return history_[static_cast<std::size_t>(range.base.value())];
    }
    void remember(const Op& op, ValueId id, bool writes) {
        const auto range = byte_range(program_, id);
        history(range).push_back({&op, id, range, writes});
    }

    // Collectives may come again with the same value (a broadcast per fragment); all else would do its work twice.
    void check_repetition() {
        std::map<std::tuple<OpKind, std::vector<ValueId>, std::vector<ValueId>>, const Op*> seen;
        for (const auto& op : program_.ops) {
            if (is_collective(op.kind)) continue;
            const auto [first, is_new] = seen.emplace(std::tuple(op.kind, op.reads, op.writes), &op);
            if (!is_new) report(op, fmt::format("does again what {} does", describe(*first->second)));
        }
    }

    void check_read(const Op& op, ValueId id) {
        const Value& value = program_.value(id);
        const auto range = byte_range(program_, id);
        const bool set_before_the_step =
            value.role == Role::input || value.role == Role::parameter || value.role == Role::state;
        // Bytes that no earlier op writes; the writes of a value's pieces add up.
        std::vector<std::pair<std::int64_t, std::int64_t>> written;
        const Touch* newest = nullptr;
        for (const auto& touch : history(range)) {
            if (!touch.writes || !touch.range.overlaps(range)) continue;
            written.emplace_back(touch.range.begin, touch.range.end);
            newest = &touch;
        }
        std::ranges::sort(written);
        auto reached = range.begin;
        for (const auto& [begin, end] : written)
            if (begin <= reached) reached = std::max(reached, end);
        if (reached < range.end && !set_before_the_step && value.bytes() > 0)
            report(op, fmt::format("reads {}, which no op before it writes", value.name));
        // In-place work gives the bytes a new name; the old content is gone.
        if (newest != nullptr && value.role == Role::activation && !is_view_of(id, newest->value) &&
            program_.value(newest->value).view_of && !is_piece_of(newest->value, id))
            report(op, fmt::format("reads {}, which {} has overwritten as {}", value.name,
                                   describe(*newest->op), program_.value(newest->value).name));
    }

    bool is_view_of(ValueId id, ValueId base) const {
        while (id != base && program_.value(id).view_of) id = program_.value(id).view_of->base;
        return id == base;
    }

    // Whether `piece` was written on its own, as part of filling `whole`: nothing wrote `whole` itself.
    bool is_piece_of(ValueId piece, ValueId whole) {
        const auto range = byte_range(program_, whole);
        return std::ranges::none_of(history(range), [&](const Touch& touch) {
            return touch.writes && touch.value != piece && touch.range.overlaps(byte_range(program_, piece));
        });
    }

    void check_overlap_of_writes(const Op& op) {
        for (std::size_t i = 0; i < op.writes.size(); ++i) {
            const auto range = byte_range(program_, op.writes[i]);
            for (std::size_t j = i + 1; j < op.writes.size(); ++j)
                if (range.overlaps(byte_range(program_, op.writes[j])))
                    report(op,
                           fmt::format("writes {} and {}, which share bytes",
                                       program_.value(op.writes[i]).name, program_.value(op.writes[j]).name));
            for (const auto read : op.reads)
                if (range.overlaps(byte_range(program_, read)) && !works_in_place(op.kind))
                    report(op, fmt::format("writes {} over {}, which it reads; it can't work in place",
                                           program_.value(op.writes[i]).name, program_.value(read).name));
        }
    }

    void check_write(const Op& op, ValueId id) {
        const Value& value = program_.value(id);
        if (value.role == Role::input) report(op, fmt::format("writes {}, an input", value.name));
        if (value.role == Role::gradient) return check_accumulation(op, id);
        if (value.role != Role::activation && value.role != Role::output) return;
        if (is_collective(op.kind)) return;
        const auto range = byte_range(program_, id);
        const bool in_place = std::ranges::any_of(
            op.reads, [&](ValueId read) { return read != id && byte_range(program_, read).overlaps(range); });
        for (const auto& touch : history(range))
            if (touch.writes && touch.range.overlaps(range) && (!in_place || touch.value == id))
                return report(
                    op, fmt::format("writes {}, which {} has written", value.name, describe(*touch.op)));
    }

    void check_accumulation(const Op& op, ValueId id) {
        const auto* attributes = std::get_if<AccumulateAttributes>(&op.attributes);
        if (attributes == nullptr) return;  // a reduction: adds up ranks, not micro-batches
        const Value& value = program_.value(id);
        const auto range = byte_range(program_, id);
        const Touch* newest = nullptr;
        for (const auto& touch : history(range))
            if (touch.range.overlaps(range)) newest = &touch;
        if (newest == nullptr) {
            if (attributes->accumulate)
                report(op, fmt::format("adds to {}, which no op before it writes", value.name));
            return;
        }
        if (!attributes->accumulate)
            report(op, fmt::format("overwrites {}, which {} has written", value.name, describe(*newest->op)));
        if (!std::holds_alternative<AccumulateAttributes>(newest->op->attributes))
            report(op, fmt::format("adds to {} behind {}", value.name, describe(*newest->op)));
        else if (op.micro_batch < newest->op->micro_batch)
            report(op, fmt::format("adds to {} behind {}; micro-batches must come in order", value.name,
                                   describe(*newest->op)));
    }

    const Program& program_;
    std::vector<std::vector<Touch>> history_;  // [base]
    std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_structure(const Program& program) {
    return StructureCheck(program).run();
}

std::vector<std::string> check_values(const Program& program) {
    return ValueCheck(program).run();
}

}  // namespace atl
