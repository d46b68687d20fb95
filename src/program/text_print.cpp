#include <fmt/ranges.h>

#include <set>

#include "core/check.h"
#include "program/attribute_fields.h"
#include "program/text.h"

namespace atl {
namespace {

void check_name(const std::string& name) {
    const bool plain = !name.empty() && name.find_first_of(" \t\r\n,=>") == std::string::npos;
    ATOLL_CHECK(plain, "a name can't be printed: \"{}\"", name);
}

std::string print_value(const Program& program, const Value& value) {
    check_name(value.name);
    auto line = fmt::format("value {} {} {} {} [{}]", value.name, name(value.role), name(value.space),
                            name(value.dtype), fmt::join(value.shape, ","));
    if (value.box) {
        check_name(value.box->tensor);
        line += fmt::format(" tensor {} {}", value.box->tensor, to_string(value.box->box));
    }
    if (value.view_of)
        line += fmt::format(" view {} {}", program.value(value.view_of->base).name,
                            value.view_of->offset_elements);
    return line;
}

// " name=value" for every field that differs from the default of the op's kind.
std::string print_attributes(const Op& op) {
    const auto defaults = default_attributes(op.kind);
    ATOLL_CHECK_EQ(op.attributes.index(), defaults.index(), "{} carries the attributes of another kind",
                   describe(op));
    std::string text;
    std::visit(
        [&](const auto& attributes) {
            std::vector<std::string> usual;
            visit_fields(std::get<std::remove_cvref_t<decltype(attributes)>>(defaults),
                         [&](auto, const auto& field) { usual.push_back(fmt::format("{}", field)); });
            std::size_t index = 0;
            visit_fields(attributes, [&](auto field_name, const auto& field) {
                if (auto printed = fmt::format("{}", field); printed != usual[index++])
                    text += fmt::format(" {}={}", field_name, printed);
            });
        },
        op.attributes);
    return text;
}

std::string print_op(const Program& program, const Op& op) {
    auto line = fmt::format("op {} {}", op.id, name(op.kind));
    for (const auto id : op.reads) line += " " + program.value(id).name;
    line += " ->";
    for (const auto id : op.writes) line += " " + program.value(id).name;
    line += print_attributes(op);
    if (op.strand != 0) line += fmt::format(" strand={}", op.strand);
    if (op.layer != -1) line += fmt::format(" layer={}", op.layer);
    if (op.micro_batch != -1) line += fmt::format(" micro_batch={}", op.micro_batch);
    if (op.resource != Resource::compute) line += fmt::format(" resource={}", name(op.resource));
    if (op.flops != 0) line += fmt::format(" flops={}", op.flops);
    if (op.bytes != 0) line += fmt::format(" bytes={}", op.bytes);
    if (op.scratch_bytes != 0) line += fmt::format(" scratch_bytes={}", op.scratch_bytes);
    if (!op.after.empty()) line += fmt::format(" after={}", fmt::join(op.after, ","));
    return line;
}

}  // namespace

std::string print(const Program& program) {
    auto text = fmt::format("program 1 rank {}\n", program.rank);
    for (const auto& [group, members] : program.groups) {
        check_name(group);
        text += fmt::format("group {} {}\n", group, fmt::join(members, " "));
    }
    std::set<std::string_view> names;
    for (const auto& value : program.values) {
        ATOLL_CHECK(names.insert(value.name).second, "two values are named {}", value.name);
        text += print_value(program, value) + "\n";
    }
    for (const auto& op : program.ops) text += print_op(program, op) + "\n";
    return text;
}

Hash128 plan_hash(const Program& program) {
    const auto text = print(program);
    return xxh3_128(std::as_bytes(std::span(text)));
}

std::string describe(const Op& op) {
    auto text = fmt::format("op {} {}", op.id, name(op.kind));
    std::vector<std::string> where;
    if (op.layer != -1) where.push_back(fmt::format("layer {}", op.layer));
    if (op.micro_batch != -1) where.push_back(fmt::format("micro-batch {}", op.micro_batch));
    if (op.strand != 0) where.push_back(fmt::format("strand {}", op.strand));
    if (!where.empty()) text += fmt::format(" ({})", fmt::join(where, ", "));
    return text;
}

}  // namespace atl
