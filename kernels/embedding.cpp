#include "kernels/embedding.h"

#include "core/check.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace {

template <class T>
void check_indices(const EmbeddingTable<T>& table, std::int64_t tokens) {
    const std::int64_t entries = table.all_entries > 0 ? table.all_entries : table.entries;
    for (std::int64_t token = 0; token < tokens; ++token) {
        ATOLL_CHECK(table.indices[token] >= 0 && table.indices[token] < entries,
                    "index {} of token {}, table of {}", table.indices[token], token, entries);
    }
}

}  // namespace

template <class T>
void embedding(const Embedding<T>& operation, InstructionSet set) {
    check_indices(operation.first, operation.tokens);
    if (operation.second.table != nullptr) check_indices(operation.second, operation.tokens);
    dispatch(operation, set);
}

template <class T>
void embedding_backward(const EmbeddingBackward<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template void embedding(const Embedding<float>&, InstructionSet);
template void embedding(const Embedding<double>&, InstructionSet);
template void embedding_backward(const EmbeddingBackward<float>&, InstructionSet);
template void embedding_backward(const EmbeddingBackward<double>&, InstructionSet);

}  // namespace atl::kernels
