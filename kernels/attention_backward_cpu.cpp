// Backward attention: scores are computed again from lse, block by block; each block then feeds dq, dk and dv.
#include <cmath>

#include "kernels/attention.h"
#include "kernels/attention_task.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

constexpr int kScoreStride = kBackwardKeyBlock + kScorePadding;

template <class T>
struct Buffers {
    T* key_panels;
    T* value_panels;
    T* keys;      // [keys, Pitch]
    T* dkeys;     // [keys, Pitch]
    T* dvalues;   // [keys, Pitch]
    T* queries;   // [kQueryBlock, Pitch], times 1/sqrt(D)
    T* doutputs;  // [kQueryBlock, Pitch]
    T* dqueries;  // [kQueryBlock, Pitch], not yet times 1/sqrt(D)
    T* weights;   // [kQueryBlock, kScoreStride]: softmax
    T* dscores;   // [kQueryBlock, kScoreStride]
    T* lse;       // [kQueryBlock]
    T* row_dots;  // [kQueryBlock]: Σ dout·out
};

template <class T>
Buffers<T> take_buffers(const AttentionShape& shape, std::byte* scratch, int thread) {
    Scratch<T> memory(reinterpret_cast<T*>(
        scratch + thread * (attention_backward_scratch_bytes(shape, sizeof(T)) / shape.threads)));
    const std::int64_t pitch = attention_pitch(shape.head_width);
    const std::int64_t keys = round_up(shape.tokens, kForwardKeyBlock) * pitch;
    const std::int64_t queries = kQueryBlock * pitch;
    const std::int64_t scores = kQueryBlock * kScoreStride;
    return {memory.take(keys),   memory.take(keys),    memory.take(keys),        memory.take(keys),
            memory.take(keys),   memory.take(queries), memory.take(queries),     memory.take(queries),
            memory.take(scores), memory.take(scores),  memory.take(kQueryBlock), memory.take(kQueryBlock)};
}

template <class T>
T scale_of(const AttentionShape& shape) {
    return static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_width)));
}

template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
    Vec<T> sum{};
    for_vectors<T>(count, [&](std::int64_t i, std::int64_t lanes) {
        sum = fma(load_first(a + i, lanes), load_first(b + i, lanes), sum);
    });
    return sum_of_lanes<T>(sum);
}

// The softmax weights and score gradients of kTileRows queries against one block of keys; zero where masked.
template <int Pitch, class T>
void differentiate_tile(const Buffers<T>& buffers, std::int64_t depth, std::int64_t query, std::int64_t tile,
                        std::int64_t key) {
    const std::int64_t keys = smaller(kBackwardKeyBlock, query + kTileRows - key);
    const std::int64_t padded = round_up(keys, kLanes<T>);
    T* tile_weights = buffers.weights + tile * kScoreStride;
    T* tile_dscores = buffers.dscores + tile * kScoreStride;
    multiply_panels<Pitch>(buffers.queries + tile * Pitch, buffers.key_panels + key * depth, depth,
                           Rows<T>{tile_weights, kScoreStride}, keys);
    multiply_panels<Pitch>(buffers.doutputs + tile * Pitch, buffers.value_panels + key * depth, depth,
                           Rows<T>{tile_dscores, kScoreStride}, keys);
    for (int row = 0; row < kTileRows; ++row) {
        T* weights = tile_weights + row * kScoreStride;
        T* dscores = tile_dscores + row * kScoreStride;
        const T lse = buffers.lse[tile + row];
        const T row_dot = buffers.row_dots[tile + row];
        for (std::int64_t j = 0; j < padded; j += kLanes<T>) {
            const Vec<T> weight = exponential<T>(load(weights + j) - lse);
            store(weights + j, weight);
            store(dscores + j, weight * (load(dscores + j) - row_dot));
        }
        for (std::int64_t j = query + row + 1 - key; j < padded; ++j) {
            weights[j] = 0;
            dscores[j] = 0;
        }
    }
}

template <int Pitch, class T>
void differentiate_block(const Buffers<T>& buffers, std::int64_t depth, std::int64_t query,
                         std::int64_t padded_rows, std::int64_t key) {
    for (std::int64_t tile = 0; tile < padded_rows; tile += kTileRows) {
        const std::int64_t keys = smaller(kBackwardKeyBlock, query + tile + kTileRows - key);
        if (keys <= 0) continue;
        differentiate_tile<Pitch>(buffers, depth, query + tile, tile, key);
        multiply_rows<kScoreStride, 1>(buffers.dscores + tile * kScoreStride,
                                       Rows<const T>{buffers.keys + key * Pitch, Pitch}, keys,
                                       Rows<T>{buffers.dqueries + tile * Pitch, Pitch}, depth,
                                       key == 0 ? Into::overwrite : Into::accumulate);
    }
    const std::int64_t keys = smaller(kBackwardKeyBlock, query + padded_rows - key);
    for (std::int64_t tile = 0; tile < keys; tile += kTileRows) {
        // The first query that sees these keys; a multiple of the tile, since blocks and tiles are.
        const std::int64_t from = key + tile > query ? key + tile - query : 0;
        multiply_rows<1, kScoreStride>(
            buffers.weights + from * kScoreStride + tile,
            Rows<const T>{buffers.doutputs + from * Pitch, Pitch}, padded_rows - from,
            Rows<T>{buffers.dvalues + (key + tile) * Pitch, Pitch}, depth, Into::accumulate);
        multiply_rows<1, kScoreStride>(
            buffers.dscores + from * kScoreStride + tile,
            Rows<const T>{buffers.queries + from * Pitch, Pitch}, padded_rows - from,
            Rows<T>{buffers.dkeys + (key + tile) * Pitch, Pitch}, depth, Into::accumulate);
    }
}

template <int Pitch, class T>
void differentiate_query_block(const AttentionBackward<T>& operation, const Buffers<T>& buffers,
                               Document document, std::int32_t head, std::int64_t query) {
    const AttentionShape& shape = operation.shape;
    const std::int64_t depth = shape.head_width;
    const std::int64_t rows = smaller(kQueryBlock, document.length - query);
    const std::int64_t padded_rows = round_up(rows, kTileRows);
    const std::int64_t first = document.first + query;
    const Rows<const T> out = output_rows(shape, operation.out, first, head);
    const Rows<const T> dout = output_rows(shape, operation.dout, first, head);
    pack_rows<Pitch>(query_rows(shape, operation.qkv, first, head), rows, depth, padded_rows,
                     scale_of<T>(shape), buffers.queries);
    pack_rows<Pitch>(dout, rows, depth, padded_rows, T{1}, buffers.doutputs);
    for (std::int64_t row = 0; row < padded_rows; ++row) {
        buffers.lse[row] = row < rows ? operation.lse[head * shape.tokens + first + row] : 0;
        buffers.row_dots[row] = row < rows ? dot(out.row(row), dout.row(row), depth) : 0;
    }
    for (std::int64_t key = 0; key < query + padded_rows; key += kBackwardKeyBlock) {
        differentiate_block<Pitch>(buffers, depth, query, padded_rows, key);
    }
    const Rows<T> dq = query_rows(shape, operation.dqkv, first, head);
    for (std::int64_t row = 0; row < rows; ++row) {
        for_vectors<T>(depth, [&](std::int64_t d, std::int64_t lanes) {
            store_first(dq.row(row) + d, load(buffers.dqueries + row * Pitch + d) * scale_of<T>(shape),
                        lanes);
        });
    }
}

template <int Pitch, class T>
void write_rows(const T* from, std::int64_t rows, std::int64_t width, Rows<T> to) {
    for (std::int64_t row = 0; row < rows; ++row) {
        for_vectors<T>(width, [&](std::int64_t d, std::int64_t lanes) {
            store_first(to.row(row) + d, load(from + row * Pitch + d), lanes);
        });
    }
}

template <int Pitch, class T>
void differentiate_document(const AttentionBackward<T>& operation, const Buffers<T>& buffers,
                            Document document, std::int32_t kv_head) {
    const AttentionShape& shape = operation.shape;
    const std::int64_t depth = shape.head_width;
    const std::int64_t padded = round_up(document.length, kTileRows);
    const Rows<const T> keys = key_rows(shape, operation.qkv, document.first, kv_head);
    pack_transposed(keys, document.length, depth, buffers.key_panels);
    pack_transposed(value_rows(shape, operation.qkv, document.first, kv_head), document.length, depth,
                    buffers.value_panels);
    pack_rows<Pitch>(keys, document.length, depth, padded, T{1}, buffers.keys);
    for (T* sums : {buffers.dkeys, buffers.dvalues}) {
        for (std::int64_t i = 0; i < padded * Pitch; ++i) sums[i] = 0;
    }
    const std::int32_t group = shape.heads / shape.kv_heads;
    for (std::int32_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (std::int64_t query = 0; query < document.length; query += kQueryBlock) {
            differentiate_query_block<Pitch>(operation, buffers, document, head, query);
        }
    }
    write_rows<Pitch>(buffers.dkeys, document.length, depth,
                      key_rows(shape, operation.dqkv, document.first, kv_head));
    write_rows<Pitch>(buffers.dvalues, document.length, depth,
                      value_rows(shape, operation.dqkv, document.first, kv_head));
}

template <class T>
void differentiate(const AttentionBackward<T>& operation) {
    for_each_document_head(operation, [&]<int Pitch>(int thread, Document document, std::int32_t kv_head) {
        const Buffers<T> buffers = take_buffers<T>(operation.shape, operation.scratch, thread);
        differentiate_document<Pitch>(operation, buffers, document, kv_head);
    });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const AttentionBackward<float>& operation) {
    ATOLL_INSTRUCTION_SET::differentiate(operation);
}
template <>
void run_variant<kInstructionSet>(const AttentionBackward<double>& operation) {
    ATOLL_INSTRUCTION_SET::differentiate(operation);
}

}  // namespace atl::kernels
