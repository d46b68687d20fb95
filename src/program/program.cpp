#include "program/program.h"

#include <algorithm>

#include "core/check.h"

namespace atl {

const Value& Program::value(ValueId id) const {
    ATOLL_CHECK(id.value() >= 0 && static_cast<std::size_t>(id.value()) < values.size(), "value {}", id);
    return values[static_cast<std::size_t>(id.value())];
}

const Op& Program::op(OpId id) const {
    ATOLL_CHECK(id.value() >= 0 && static_cast<std::size_t>(id.value()) < ops.size(), "op {}", id);
    return ops[static_cast<std::size_t>(id.value())];
}

ValueId Program::find(const std::string& name) const {
    const auto found = std::ranges::find(values, name, &Value::name);
    ATOLL_CHECK(found != values.end(), "no value named {}", name);
    return found->id;
}

ValueView Program::resolve(ValueId id) const {
    ValueView view{id, 0};
    while (const auto& next = value(view.base).view_of)
        view = {next->base, view.offset_elements + next->offset_elements};
    return view;
}

ValueId ProgramBuilder::add(Value value) {
    value.id = ValueId(static_cast<std::int32_t>(program_.values.size()));
    program_.values.push_back(std::move(value));
    return program_.values.back().id;
}

void ProgramBuilder::add_group(const std::string& name, std::vector<Rank> members) {
    ATOLL_CHECK(std::ranges::is_sorted(members), "the members of group {} are not sorted", name);
    program_.groups[name] = std::move(members);
}

OpId ProgramBuilder::add(Op op) {
    op.id = OpId(static_cast<std::int32_t>(program_.ops.size()));
    program_.ops.push_back(std::move(op));
    return program_.ops.back().id;
}

}  // namespace atl
