#include "support/random_program.h"

#include <fmt/format.h>

#include "program/attribute_fields.h"

namespace atl::test {
namespace {

void randomize(RandomChoice& random, bool& field) {
    field = random.one_in(2);
}
void randomize(RandomChoice& random, double& field) {
    if (!random.one_in(3)) field = random.number();
}
void randomize(RandomChoice& random, std::int32_t& field) {
    field = static_cast<std::int32_t>(random.below(1000)) - 10;
}
void randomize(RandomChoice& random, std::int64_t& field) {
    field = random.below(1'000'000'000'000);
}
void randomize(RandomChoice& random, Rank& field) {
    field = Rank(static_cast<std::int32_t>(random.below(64)));
}
void randomize(RandomChoice& random, std::string& field) {
    field = fmt::format("group-{}", random.below(5));
}

Shape random_shape(RandomChoice& random) {
    Shape shape(static_cast<std::size_t>(random.below(4)));
    for (auto& extent : shape) extent = random.below(100);
    return shape;
}

Value arbitrary_value(RandomChoice& random, std::int32_t index, std::int32_t count) {
    Value value;
    value.name = fmt::format("v{}.{}/weight:{}", index, random.below(100), index);
    value.shape = random_shape(random);
    value.dtype = static_cast<DType>(random.below(8));
    value.role = static_cast<Role>(random.below(6));
    value.space = static_cast<Space>(random.below(2));
    if (random.one_in(3)) {
        value.box.emplace();
        value.box->tensor = fmt::format("tensor.{}", random.below(10));
        for (auto n = random.below(3); n > 0; --n)
            value.box->box.ranges.push_back({random.below(50), 50 + random.below(50)});
    }
    if (random.one_in(3))
        value.view_of =
            ValueView{ValueId(static_cast<std::int32_t>(random.below(count))), random.below(1000)};
    return value;
}

Op arbitrary_op(RandomChoice& random, std::int32_t values) {
    Op op;
    op.kind = static_cast<OpKind>(random.below(static_cast<std::int64_t>(OpKind::receive) + 1));
    op.attributes = default_attributes(op.kind);
    std::visit(
        [&](auto& attributes) {
            visit_fields(attributes, [&](auto, auto& field) { randomize(random, field); });
        },
        op.attributes);
    for (auto* ids : {&op.reads, &op.writes})
        for (auto n = random.below(5); n > 0; --n)
            ids->push_back(ValueId(static_cast<std::int32_t>(random.below(values))));
    randomize(random, op.strand);
    randomize(random, op.layer);
    randomize(random, op.micro_batch);
    op.resource = static_cast<Resource>(random.below(kResources));
    op.flops = random.one_in(3) ? 0 : random.number();
    op.bytes = random.below(1'000'000'000'000);
    op.scratch_bytes = random.below(2) * random.below(5000);
    for (auto n = random.below(3); n > 0; --n)
        op.after.push_back(OpId(static_cast<std::int32_t>(random.below(1000))));
    return op;
}

}  // namespace

Program arbitrary_program(std::uint64_t seed) {
    RandomChoice random(seed);
    ProgramBuilder builder(Rank(static_cast<std::int32_t>(random.below(8))));
    for (auto n = random.below(3); n > 0; --n)
        builder.add_group(fmt::format("group-{}", n), {Rank(0), Rank(static_cast<std::int32_t>(n))});
    const auto values = static_cast<std::int32_t>(1 + random.below(20));
    for (std::int32_t i = 0; i < values; ++i) builder.add(arbitrary_value(random, i, values));
    for (auto n = random.below(30); n > 0; --n) builder.add(arbitrary_op(random, values));
    return builder.take();
}

Program legal_program(std::uint64_t seed, std::int32_t ops) {
    RandomChoice random(seed);
    ProgramBuilder builder;
    const auto add_value = [&](Role role, std::optional<ValueView> view, Shape shape) {
        return builder.add(Value{.name = fmt::format("v{}", builder.program().values.size()),
                                 .shape = std::move(shape),
                                 .role = role,
                                 .view_of = view});
    };
    const std::vector<Resource> resources = {Resource::compute, Resource::compute, Resource::link_intra,
                                             Resource::link_inter, Resource::copy};
    std::vector<ValueId> readable{add_value(Role::input, std::nullopt, {16})};
    for (std::int32_t i = 0; i < ops; ++i) {
        Op op{.kind = OpKind::square_sum, .resource = random.any(resources)};
        if (random.one_in(3)) op.scratch_bytes = 1 + random.below(4000);
        // Mostly recent values, so that lifetimes end.
        const auto recent = std::min<std::int64_t>(std::ssize(readable), 6);
        auto& chosen = readable[static_cast<std::size_t>(std::ssize(readable) - 1 - random.below(recent))];
        const auto& value = builder.program().value(chosen);
        if (value.role == Role::activation && random.one_in(4)) {
            op.kind = OpKind::rope;
            op.attributes = HeadAttributes{};
            op.reads = {chosen, readable.front(), readable.front()};
            chosen = add_value(Role::activation, ValueView{chosen, 0}, value.shape);
            op.writes = {chosen};
        } else {
            op.reads = {chosen};
            if (random.one_in(2)) op.reads.push_back(random.any(readable));
            readable.push_back(add_value(Role::activation, std::nullopt, {1 + random.below(3000)}));
            op.writes = {readable.back()};
        }
        builder.add(std::move(op));
    }
    return builder.take();
}

}  // namespace atl::test
