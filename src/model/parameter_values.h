// The values of a program that hold a rank's pieces of parameters, gradients and optimizer moments (names and packing:
// training_program.h).
#pragma once

#include "model/model_parts.h"
#include "program/step_ops.h"

namespace atl {

struct Parameter {
    PackedPieces pieces;
    ValueId weight;
    ValueId gradient;  // training only
    // Of a tied head on a rank that holds both ends of a pipeline: what the head adds. Apart, because the first
    // stage's backward comes later than the last one's of the next micro-batch.
    std::optional<ValueId> head_gradient;
};

struct StackedValue {
    std::string prefix;  // of its name and its pieces'
    DType dtype = DType::f32;
    Role role = Role::parameter;
    std::optional<ValueView> view_of;
};

// Adds a value for a stack of pieces, and a view of it for each piece where there are several. Those of one piece
// have its LogicalBox.
ValueId add_stacked(StepBuilder& builder, const PackedPieces& pieces, const StackedValue& value);
// A view of some rows of a value; the value itself if they are all of it.
ValueId add_rows(StepBuilder& builder, ValueId value, const Range& rows);

ModelParts<Parameter> add_parameters(StepBuilder& builder, const ModelParts<PackedPieces>& parts,
                                     DType dtype);

}  // namespace atl
