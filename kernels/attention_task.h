// What the forward and backward attention variants share: documents, tasks, head addresses, scratch.
#pragma once

#include "kernels/exponential.h"
#include "kernels/parallel.h"
#include "kernels/scratch.h"
#include "kernels/tile_product.h"

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

static_assert(kQueryBlock % kTileRows == 0 && kForwardKeyBlock % kTileRows == 0 &&
              kBackwardKeyBlock % kTileRows == 0);
static_assert(kForwardKeyBlock % kPanelColumns<float> == 0 && kBackwardKeyBlock % kPanelColumns<float> == 0);

// Tokens [first, first + length) are one document.
struct Document {
    std::int64_t first = 0;
    std::int64_t length = 0;
};

inline std::int64_t count_documents(const std::int32_t* starts, std::int64_t tokens) {
    std::int64_t documents = 0;
    while (documents < tokens && starts[documents] < tokens) ++documents;
    return documents;
}
inline Document document_at(const std::int32_t* starts, std::int64_t index) {
    return {starts[index], starts[index + 1] - starts[index]};
}

// Rows of one head in packed qkv (or dqkv), from a document's first token.
template <class T>
Rows<T> query_rows(const AttentionShape& shape, T* qkv, std::int64_t first, std::int32_t head) {
    return {qkv + first * shape.row_width() + head * shape.head_width, shape.row_width()};
}
template <class T>
Rows<T> key_rows(const AttentionShape& shape, T* qkv, std::int64_t first, std::int32_t kv_head) {
    return query_rows(shape, qkv, first, shape.heads + kv_head);
}
template <class T>
Rows<T> value_rows(const AttentionShape& shape, T* qkv, std::int64_t first, std::int32_t kv_head) {
    return query_rows(shape, qkv, first, shape.heads + shape.kv_heads + kv_head);
}
// Rows of one head in out (or dout).
template <class T>
Rows<T> output_rows(const AttentionShape& shape, T* out, std::int64_t first, std::int32_t head) {
    const std::int64_t width = std::int64_t{shape.heads} * shape.head_width;
    return {out + first * width + head * shape.head_width, width};
}

// Hands out consecutive parts of a thread's scratch.
template <class T>
class Scratch {
  public:
    explicit Scratch(T* memory) : next_(memory) {}
    T* take(std::int64_t elements) {
        T* part = next_;
        next_ += elements;
        return part;
    }

  private:
    T* next_;
};

// Calls work.operator()<Pitch>(thread, document, key/value head) for every document and head, spread over threads.
// The pitch is a constant in the inner loops, so each one is an instance of its own.
template <class Operation, class Work>
void for_each_document_head(const Operation& operation, const Work& work) {
    const AttentionShape& shape = operation.shape;
    const std::int64_t documents = count_documents(operation.starts, shape.tokens);
    parallel_tasks(documents * shape.kv_heads, shape.threads, [&](std::int64_t task, int thread) {
        const Document document = document_at(operation.starts, task / shape.kv_heads);
        const auto kv_head = static_cast<std::int32_t>(task % shape.kv_heads);
        switch (attention_pitch(shape.head_width)) {
            case 64:
                return work.template operator()<64>(thread, document, kv_head);
            case 128:
                return work.template operator()<128>(thread, document, kv_head);
            default:
                return work.template operator()<256>(thread, document, kv_head);
        }
    });
}

inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return a < b ? a : b;
}

// The result of a vector function for one scalar.
template <class T>
inline T exponential_of(T x) {
    return exponential<T>(broadcast(x))[0];
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
