#include "kernels/attention.h"

#include "core/check.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace {

void check_shape(const AttentionShape& shape, const std::int32_t* starts) {
    ATOLL_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "{} heads, {} key/value heads",
                shape.heads, shape.kv_heads);
    ATOLL_CHECK(shape.head_width > 0 && shape.head_width <= kLargestHeadWidth, "head width {}",
                shape.head_width);
    ATOLL_CHECK_LE(1, shape.threads);
    std::int64_t previous = -1;
    for (std::int64_t i = 0; i <= shape.tokens; ++i) {
        const bool starts_at_zero = i > 0 || starts[i] == 0;
        ATOLL_CHECK(starts_at_zero && (starts[i] > previous || starts[i] == shape.tokens) &&
                        starts[i] <= shape.tokens,
                    "starts[{}] = {} after {} of {} tokens", i, starts[i], previous, shape.tokens);
        previous = starts[i];
    }
    ATOLL_CHECK_EQ(previous, shape.tokens, "the end of the last document");
}

}  // namespace

template <class T>
void attention(const Attention<T>& operation, InstructionSet set) {
    check_shape(operation.shape, operation.starts);
    dispatch(operation, set);
}

template <class T>
void attention_backward(const AttentionBackward<T>& operation, InstructionSet set) {
    check_shape(operation.shape, operation.starts);
    dispatch(operation, set);
}

template void attention(const Attention<float>&, InstructionSet);
template void attention(const Attention<double>&, InstructionSet);
template void attention_backward(const AttentionBackward<float>&, InstructionSet);
template void attention_backward(const AttentionBackward<double>&, InstructionSet);

}  // namespace atl::kernels
