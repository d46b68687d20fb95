#include "engine/bind.h"

#include "engine/executor.h"
#include "kernels/scratch.h"

namespace atl {
namespace {

template <class T>
BoundCall bind_typed(const BoundOperands& operands) {
    switch (operands.op().kind) {
        case OpKind::embedding:
        case OpKind::embedding_backward:
        case OpKind::cross_entropy:
        case OpKind::logits_max:
        case OpKind::logits_sum:
        case OpKind::cross_entropy_parallel:
            return bind_vocabulary<T>(operands);
        case OpKind::rms_norm:
        case OpKind::add_rms_norm:
        case OpKind::rms_norm_backward:
        case OpKind::layer_norm:
        case OpKind::add_layer_norm:
        case OpKind::layer_norm_backward:
            return bind_norm<T>(operands);
        case OpKind::linear:
        case OpKind::linear_backward_input:
        case OpKind::linear_backward_weight:
            return bind_linear<T>(operands);
        case OpKind::rope:
        case OpKind::rope_backward:
        case OpKind::attention:
        case OpKind::attention_backward:
            return bind_attention<T>(operands);
        case OpKind::swiglu:
        case OpKind::swiglu_backward:
        case OpKind::gelu:
        case OpKind::gelu_backward:
        case OpKind::add:
            return bind_elementwise<T>(operands);
        case OpKind::muon:
            return bind_muon<T>(operands);
        case OpKind::square_sum:
        case OpKind::adamw:
        case OpKind::sgd:
            return bind_optimizer<T>(operands);
        default:
            break;
    }
    ATOLL_CHECK(false, "op {} is no compute op", operands.op().id);
    return {};
}

// The one among the op's values that is neither an index nor a sum in f64.
DType activation_dtype(const BoundOperands& operands) {
    switch (operands.op().kind) {
        case OpKind::embedding:
        case OpKind::embedding_backward:
            return operands.written_value(0).dtype;
        default:
            return operands.read_value(0).dtype;
    }
}

}  // namespace

BoundCall bind_op(const BoundOperands& operands) {
    const DType dtype = activation_dtype(operands);
    if (dtype == DType::f64) return bind_typed<double>(operands);
    ATOLL_CHECK(dtype == DType::f32, "op {}: {} is not computed on processors", operands.op().id,
                name(dtype));
    return bind_typed<float>(operands);
}

std::int64_t op_scratch_bytes(const Program& program, const Op& op, std::int32_t threads) {
    const auto value = [&](ValueId id) -> const Value& { return program.value(id); };
    switch (op.kind) {
        case OpKind::rms_norm_backward:
        case OpKind::layer_norm_backward: {
            const Value& dx = value(op.writes.at(0));
            return kernels::norm_backward_scratch_bytes(dx.shape.back(), size_bytes(dx.dtype));
        }
        case OpKind::attention:
        case OpKind::attention_backward: {
            const auto& heads = std::get<HeadAttributes>(op.attributes);
            const Value& out = value(op.kind == OpKind::attention ? op.writes.at(0) : op.reads.at(0));
            const kernels::AttentionShape shape{out.shape.front(), heads.heads, heads.kv_heads,
                                                heads.head_width, threads};
            return op.kind == OpKind::attention
                       ? kernels::attention_scratch_bytes(shape, size_bytes(out.dtype))
                       : kernels::attention_backward_scratch_bytes(shape, size_bytes(out.dtype));
        }
        case OpKind::muon:
            return muon_scratch_bytes(value(op.reads.at(0)));
        default:
            return 0;
    }
}

}  // namespace atl
