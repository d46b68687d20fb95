// Forward attention: for each block of queries, blocks of keys with a running maximum and sum.
#include <cmath>

#include "kernels/attention.h"
#include "kernels/attention_task.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

constexpr int kScoreStride = kForwardKeyBlock + kScorePadding;

template <class T>
struct Buffers {
    T* key_panels;
    T* values;   // [keys, Pitch]
    T* queries;  // [kQueryBlock, Pitch], times 1/sqrt(D)
    T* results;  // [kQueryBlock, Pitch], not yet divided by the sums
    T* scores;   // [kTileRows, kScoreStride]
    T* maxima;   // [kQueryBlock]
    T* sums;     // [kQueryBlock]
};

template <class T>
Buffers<T> take_buffers(const AttentionShape& shape, std::byte* scratch, int thread) {
    Scratch<T> memory(
        reinterpret_cast<T*>(scratch + thread * (attention_scratch_bytes(shape, sizeof(T)) / shape.threads)));
    const std::int64_t keys = round_up(shape.tokens, kForwardKeyBlock);
    const std::int64_t pitch = attention_pitch(shape.head_width);
    return {memory.take(keys * pitch),
            memory.take(keys * pitch),
            memory.take(kQueryBlock * pitch),
            memory.take(kQueryBlock * pitch),
            memory.take(kTileRows * kScoreStride),
            memory.take(kQueryBlock),
            memory.take(kQueryBlock)};
}

// One row of scores becomes exp(score − maximum); updates the row's maximum and sum and returns the factor
// by which what was summed before must shrink.
template <class T>
[[gnu::always_inline]] inline T soften_row(T* scores, std::int64_t keys, T& maximum, T& sum) {
    Vec<T> largest = broadcast(maximum);
    for (std::int64_t j = 0; j < keys; j += kLanes<T>) largest = larger(largest, load(scores + j));
    const T new_maximum = largest_lane<T>(largest);
    Vec<T> total{};
    for (std::int64_t j = 0; j < keys; j += kLanes<T>) {
        const Vec<T> weight = exponential<T>(load(scores + j) - new_maximum);
        store(scores + j, weight);
        total += weight;
    }
    const T shrink = exponential_of(maximum - new_maximum);
    sum = sum * shrink + sum_of_lanes<T>(total);
    maximum = new_maximum;
    return shrink;
}

// kTileRows queries (from `query` in the document, `tile` in the block) against one block of keys.
template <int Pitch, class T>
void attend_tile(const Buffers<T>& buffers, const AttentionShape& shape, std::int64_t query,
                 std::int64_t tile, std::int64_t key) {
    const std::int64_t keys = smaller(kForwardKeyBlock, query + kTileRows - key);
    const std::int64_t padded = round_up(keys, kLanes<T>);
    multiply_panels<Pitch>(buffers.queries + tile * Pitch, buffers.key_panels + key * shape.head_width,
                           shape.head_width, Rows<T>{buffers.scores, kScoreStride}, keys);
    for (int row = 0; row < kTileRows; ++row) {
        T* scores = buffers.scores + row * kScoreStride;
        for (std::int64_t j = query + row + 1 - key; j < padded; ++j) scores[j] = -static_cast<T>(INFINITY);
        const T shrink = soften_row(scores, padded, buffers.maxima[tile + row], buffers.sums[tile + row]);
        if (key == 0) continue;
        T* result = buffers.results + (tile + row) * Pitch;
        for (std::int64_t d = 0; d < shape.head_width; d += kLanes<T>)
            store(result + d, load(result + d) * shrink);
    }
    multiply_rows<kScoreStride, 1>(buffers.scores, Rows<const T>{buffers.values + key * Pitch, Pitch}, keys,
                                   Rows<T>{buffers.results + tile * Pitch, Pitch}, shape.head_width,
                                   key == 0 ? Into::overwrite : Into::accumulate);
}

template <int Pitch, class T>
void attend_query_block(const Attention<T>& operation, const Buffers<T>& buffers, Document document,
                        std::int32_t head, std::int64_t query) {
    const AttentionShape& shape = operation.shape;
    const std::int64_t rows = smaller(kQueryBlock, document.length - query);
    const std::int64_t padded_rows = round_up(rows, kTileRows);
    const std::int64_t first = document.first + query;
    pack_rows<Pitch>(query_rows(shape, operation.qkv, first, head), rows, shape.head_width, padded_rows,
                     static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_width))), buffers.queries);
    for (std::int64_t row = 0; row < padded_rows; ++row) {
        buffers.maxima[row] = -static_cast<T>(INFINITY);
        buffers.sums[row] = 0;
    }
    for (std::int64_t key = 0; key < query + padded_rows; key += kForwardKeyBlock) {
        for (std::int64_t tile = 0; tile < padded_rows; tile += kTileRows) {
            if (key < query + tile + kTileRows) attend_tile<Pitch>(buffers, shape, query + tile, tile, key);
        }
    }
    const Rows<T> out = output_rows(shape, operation.out, first, head);
    for (std::int64_t row = 0; row < rows; ++row) {
        const T inverse = 1 / buffers.sums[row];
        for_vectors<T>(shape.head_width, [&](std::int64_t d, std::int64_t lanes) {
            store_first(out.row(row) + d, load(buffers.results + row * Pitch + d) * inverse, lanes);
        });
        operation.lse[head * shape.tokens + first + row] = buffers.maxima[row] + std::log(buffers.sums[row]);
    }
}

template <int Pitch, class T>
void attend_document(const Attention<T>& operation, const Buffers<T>& buffers, Document document,
                     std::int32_t kv_head) {
    const AttentionShape& shape = operation.shape;
    pack_transposed(key_rows(shape, operation.qkv, document.first, kv_head), document.length,
                    shape.head_width, buffers.key_panels);
    pack_rows<Pitch>(value_rows(shape, operation.qkv, document.first, kv_head), document.length,
                     shape.head_width, round_up(document.length, kTileRows), T{1}, buffers.values);
    const std::int32_t group = shape.heads / shape.kv_heads;
    for (std::int32_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (std::int64_t query = 0; query < document.length; query += kQueryBlock) {
            attend_query_block<Pitch>(operation, buffers, document, head, query);
        }
    }
}

template <class T>
void attend(const Attention<T>& operation) {
    for_each_document_head(operation, [&]<int Pitch>(int thread, Document document, std::int32_t kv_head) {
        const Buffers<T> buffers = take_buffers<T>(operation.shape, operation.scratch, thread);
        attend_document<Pitch>(operation, buffers, document, kv_head);
    });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const Attention<float>& operation) {
    ATOLL_INSTRUCTION_SET::attend(operation);
}
template <>
void run_variant<kInstructionSet>(const Attention<double>& operation) {
    ATOLL_INSTRUCTION_SET::attend(operation);
}

}  // namespace atl::kernels
