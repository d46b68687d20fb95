#include "model/flops.h"

namespace atl {

double forward_flops_per_token(const ModelShape& shape, std::int64_t context) {
    const auto hidden = static_cast<double>(shape.hidden);
    const auto ffn = static_cast<double>(shape.ffn);
    const auto attended = static_cast<double>(shape.heads * shape.head_width);
    const double ffn_matrices = shape.kind == ModelKind::llama ? 3 : 2;
    const double weights =
        hidden * static_cast<double>(shape.qkv_rows()) + attended * hidden + ffn_matrices * hidden * ffn;
    const double keys = (static_cast<double>(context) + 1) / 2;
    const double layer = 2 * weights + 4 * attended * keys;
    return static_cast<double>(shape.layers) * layer + 2 * hidden * static_cast<double>(shape.vocab);
}

double backward_flops_per_token(const ModelShape& shape, std::int64_t context) {
    return 2 * forward_flops_per_token(shape, context);
}

}  // namespace atl
