// Rows of one table, or the sum of rows of two (tokens and learned positions), and the scatter of gradients.
//
// A table may be some rows of a larger one: then an index elsewhere in that gives zeros, and backward adds nothing.
// T is float or double. Backward adds in token order, so repeated indices give the same bits with any number of
// threads. Threads: OpenMP of the caller. Forward throws CheckError for an index outside the
// whole table; backward passes by what is not here. Cost: memory bound.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct EmbeddingTable {
    const std::int32_t* indices = nullptr;  // [tokens]
    const T* table = nullptr;               // [entries, channels]
    std::int64_t entries = 0;
    std::int64_t first_entry = 0;  // number of the first one here
    std::int64_t all_entries = 0;  // of the whole table; 0 = these are all
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
    std::int64_t first_entry = 0;
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
