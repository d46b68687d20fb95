// Rows of one table, or the sum of rows of two (tokens and learned positions), and the scatter of gradients.
//
// T is float or double. Backward adds in token order, so repeated indices give the same bits with any number of
// threads. Threads: OpenMP of the caller. Throws CheckError for an index outside its table. Cost: memory bound.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct EmbeddingTable {
    const std::int32_t* indices = nullptr;  // [tokens]
    const T* table = nullptr;               // [entries, channels]
    std::int64_t entries = 0;
};

template <class T>
struct Embedding {
    std::int64_t tokens = 0;
    std::int64_t channels = 0;
    EmbeddingTable<T> first;
    EmbeddingTable<T> second;  // none when its table is null
    T* x = nullptr;            // [tokens, channels]
};

template <class T>
struct EmbeddingBackward {
    std::int64_t tokens = 0;
    std::int64_t channels = 0;
    std::int64_t entries = 0;
    const std::int32_t* indices = nullptr;
    const T* dx = nullptr;
    T* dtable = nullptr;      // [entries, channels]
    bool accumulate = false;  // otherwise rows without a token become zero
};

template <class T>
void embedding(const Embedding<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void embedding_backward(const EmbeddingBackward<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
