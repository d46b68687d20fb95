#include "model/parameter_values.h"

#include "core/check.h"

namespace atl {

ValueId add_stacked(StepBuilder& builder, const PackedPieces& pieces, const StackedValue& value) {
    const auto box_of = [](const TensorPiece& piece) { return LogicalBox{piece.tensor.name, piece.box}; };
    const bool single = pieces.pieces.size() == 1;
    Value stack{.name = value.prefix + (single ? pieces.pieces.front().name : pieces.name),
                .shape = pieces.shape(),
                .dtype = value.dtype,
                .role = value.role,
                .view_of = value.view_of};
    if (single) stack.box = box_of(pieces.pieces.front());
    const auto id = builder.add(std::move(stack));
    if (single) return id;
    std::int64_t offset = 0;
    for (const auto& piece : pieces.pieces) {
        builder.add(Value{.name = value.prefix + piece.name,
                          .shape = piece.box.shape(),
                          .dtype = value.dtype,
                          .role = value.role,
                          .box = box_of(piece),
                          .view_of = ValueView{id, offset}});
        offset += piece.box.elements();
    }
    return id;
}

ValueId add_rows(StepBuilder& builder, ValueId value, const Range& rows) {
    Value view = builder.program().value(value);
    if (rows == Range{0, view.shape.front()}) return value;
    Shape row = view.shape;
    row.front() = 1;
    view.name += fmt::format("[{}:{}]", rows.begin, rows.end);
    view.shape.front() = rows.size();
    view.box.reset();
    view.view_of = ValueView{value, rows.begin * element_count(row)};
    return builder.add(std::move(view));
}

ModelParts<Parameter> add_parameters(StepBuilder& builder, const ModelParts<PackedPieces>& parts,
                                     DType dtype) {
    return transform<Parameter>(parts, [&](const PackedPieces& pieces) {
        return Parameter{.pieces = pieces,
                         .weight = add_stacked(builder, pieces, {.prefix = "", .dtype = dtype})};
    });
}

}  // namespace atl
