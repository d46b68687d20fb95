#include "kernels/embedding.h"

#include "core/check.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace {

void check_indices(const std::int32_t* indices, std::int64_t tokens, std::int64_t entries) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        ATOLL_CHECK(indices[token] >= 0 && indices[token] < entries, "index {} of token {}, table of {}",
                    indices[token], token, entries);
    }
}

}  // namespace

template <class T>
void embedding(const Embedding<T>& operation, InstructionSet set) {
    check_indices(operation.first.indices, operation.tokens, operation.first.entries);
    if (operation.second.table != nullptr) {
        check_indices(operation.second.indices, operation.tokens, operation.second.entries);
    }
    dispatch(operation, set);
}

template <class T>
void embedding_backward(const EmbeddingBackward<T>& operation, InstructionSet set) {
    check_indices(operation.indices, operation.tokens, operation.entries);
    dispatch(operation, set);
}

template void embedding(const Embedding<float>&, InstructionSet);
template void embedding(const Embedding<double>&, InstructionSet);
template void embedding_backward(const EmbeddingBackward<float>&, InstructionSet);
template void embedding_backward(const EmbeddingBackward<double>&, InstructionSet);

}  // namespace atl::kernels
