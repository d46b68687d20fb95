#include "model/parameter_values.h"

#include "core/check.h"

namespace atl {
namespace {

// Adds to `base` a twin of every view that `model` has, named with a prefix: the parts of a packed parameter.
void add_twin_views(StepBuilder& builder, ValueId model, ValueId base, const std::string& prefix) {
    const auto& values = builder.program().values;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!values[i].view_of || values[i].view_of->base != model || values[i].role != Role::parameter)
            continue;
        Value twin = values[i];
        twin.name = prefix + twin.name;
        twin.role = builder.program().value(base).role;
        twin.view_of->base = base;
        builder.add(std::move(twin));
    }
}

// A value like the parameter's weight: same shape, same parts.
ValueId add_twin(StepBuilder& builder, const Parameter& parameter, const std::string& prefix, Role role,
                 std::optional<ValueView> view_of = std::nullopt) {
    Value twin = builder.program().value(parameter.weight);
    twin.name = prefix + twin.name;
    twin.role = role;
    twin.view_of = view_of;
    const auto id = builder.add(std::move(twin));
    add_twin_views(builder, parameter.weight, id, prefix);
    return id;
}

}  // namespace

ModelParts<Parameter> add_parameters(StepBuilder& builder, const ModelShape& shape, DType dtype) {
    return transform<Parameter>(model_parts(shape), [&](const PackedTensors& part) {
        const bool single = part.tensors.size() == 1;
        const auto box_of = [](const TensorSpec& tensor) {
            return LogicalBox{tensor.name, Box::whole(tensor.shape)};
        };
        Parameter parameter{.name = part.name, .decays = part.tensors.front().decays};
        Value value{.name = part.name, .shape = part.shape(), .dtype = dtype, .role = Role::parameter};
        if (single) value.box = box_of(part.tensors.front());
        parameter.weight = builder.add(value);
        if (single) return parameter;
        std::int64_t offset = 0;
        for (const auto& tensor : part.tensors) {
            ATOLL_CHECK_EQ(tensor.decays, parameter.decays, "{}", part.name);
            builder.add(Value{.name = tensor.name,
                              .shape = tensor.shape,
                              .dtype = dtype,
                              .role = Role::parameter,
                              .box = box_of(tensor),
                              .view_of = ValueView{parameter.weight, offset}});
            offset += element_count(tensor.shape);
        }
        return parameter;
    });
}

std::vector<ValueId> add_gradients(StepBuilder& builder, ModelParts<Parameter>& parameters,
                                   std::int64_t bucket_bytes) {
    std::vector<ValueId> buckets;
    std::vector<Parameter*> members;
    std::int64_t elements = 0;
    DType dtype = DType::f32;
    const auto close = [&] {
        if (members.empty()) return;
        const auto bucket = builder.add(Value{.name = fmt::format("bucket_{}", buckets.size()),
                                              .shape = {elements},
                                              .dtype = dtype,
                                              .role = Role::gradient});
        std::int64_t offset = 0;
        for (auto* member : members) {
            member->gradient = add_twin(builder, *member, "grad/", Role::gradient, ValueView{bucket, offset});
            offset += element_count(builder.program().value(member->weight).shape);
        }
        buckets.push_back(bucket);
        members.clear();
        elements = 0;
    };
    for_each_backward(parameters, [&](Parameter& parameter) {
        const auto& weight = builder.program().value(parameter.weight);
        dtype = weight.dtype;
        elements += element_count(weight.shape);
        members.push_back(&parameter);
        if (elements * size_bytes(dtype) >= bucket_bytes) close();
    });
    close();
    return buckets;
}

void add_moments(StepBuilder& builder, ModelParts<Parameter>& parameters) {
    for_each_backward(parameters, [&](Parameter& parameter) {
        parameter.first_moment = add_twin(builder, parameter, "m/", Role::state);
        parameter.second_moment = add_twin(builder, parameter, "v/", Role::state);
    });
}

}  // namespace atl
