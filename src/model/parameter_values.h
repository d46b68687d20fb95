// The values of a program that hold a model's parameters, gradients and optimizer moments (names and packing:
// training_program.h).
#pragma once

#include "model/model_parts.h"
#include "program/step_ops.h"

namespace atl {

struct Parameter {
    std::string name;
    ValueId weight;
    ValueId gradient;       // training only, as are the moments
    ValueId first_moment;   // adamw only
    ValueId second_moment;  // adamw only
    bool decays = false;
};

// Adds one value per part, and a view of it per tensor where several are packed.
ModelParts<Parameter> add_parameters(StepBuilder& builder, const ModelShape& shape, DType dtype);
// Adds gradients as views of buckets, filled in the order in which backward finishes; a bucket is closed once it
// holds bucket_bytes. Returns the buckets.
std::vector<ValueId> add_gradients(StepBuilder& builder, ModelParts<Parameter>& parameters,
                                   std::int64_t bucket_bytes);
void add_moments(StepBuilder& builder, ModelParts<Parameter>& parameters);

}  // namespace atl
