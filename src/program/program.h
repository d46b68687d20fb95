// Program: everything one rank does in a step, as data. Made by pure functions, checked, printed, placed in
// memory, simulated and run. The hash of its printed form is the plan hash that ranks compare.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/op.h"
#include "program/value.h"

namespace atl {

// Values of a program are numbered from 0 in order, and so are ops: values[id.value()].id == id. Ops stand in
// issue order: each resource runs its own ops in this order, and waits for data, `after` and memory beyond
// that.
struct Program {
    Rank rank;
    std::map<std::string, std::vector<Rank>> groups;  // the collectives' groups: sorted members
    std::vector<Value> values;
    std::vector<Op> ops;

    const Value& value(ValueId id) const;
    const Op& op(OpId id) const;
    ValueId find(const std::string& name) const;  // by the value's name; a missing one fails a check
    // The value whose bytes `id` shares, following views to the end, and where it begins there.
    ValueView resolve(ValueId id) const;

    bool operator==(const Program&) const = default;
};

// Appends values and ops with the next free id. Names must be unique.
class ProgramBuilder {
  public:
    explicit ProgramBuilder(Rank rank = Rank(0)) { program_.rank = rank; }

    ValueId add(Value value);  // fills in the id
    OpId add(Op op);
    void add_group(const std::string& name, std::vector<Rank> members);  // sorted by the caller
    const Program& program() const { return program_; }
    Program take() { return std::move(program_); }

  private:
    Program program_;
};

}  // namespace atl
