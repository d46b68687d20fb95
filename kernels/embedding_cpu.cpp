// Gathers of table rows by tokens; scatters by columns, so that each thread adds in token order.
#include "kernels/embedding.h"

#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

// Null if it is not here.
template <class T>
const T* entry(const EmbeddingTable<T>& from, std::int64_t token, std::int64_t channels) {
    if (from.table == nullptr) return nullptr;
    const std::int64_t index = from.indices[token] - from.first_entry;
    if (index < 0 || index >= from.entries) return nullptr;
    return from.table + index * channels;
}

template <class T>
void run(const Embedding<T>& op) {
    const std::int64_t channels = op.channels;
    parallel_ranges(op.tokens * channels, channels, [&](Range range) {
        for (std::int64_t token = range.begin / channels; token * channels < range.end; ++token) {
            const T* first = entry(op.first, token, channels);
            const T* second = entry(op.second, token, channels);
            T* x = op.x + token * channels;
            for_vectors<T>(channels, [&](std::int64_t c, std::int64_t lanes) {
                Vec<T> value{};
                if (first != nullptr) value = load_first(first + c, lanes);
                if (second != nullptr) value += load_first(second + c, lanes);
                store_first(x + c, value, lanes);
            });
        }
    });
}

template <class T>
void scatter_columns(const EmbeddingBackward<T>& op, Range columns) {
    const std::int64_t width = columns.end - columns.begin;
    T* dtable = op.dtable + columns.begin;
    const T* dx = op.dx + columns.begin;
    if (!op.accumulate) {
        for (std::int64_t row = 0; row < op.entries; ++row) {
            for (std::int64_t c = 0; c < width; ++c) dtable[row * op.channels + c] = 0;
        }
    }
    for (std::int64_t token = 0; token < op.tokens; ++token) {
        const std::int64_t entry = op.indices[token] - op.first_entry;
        if (entry < 0 || entry >= op.entries) continue;
        T* to = dtable + entry * op.channels;
        for_vectors<T>(width, [&](std::int64_t c, std::int64_t lanes) {
            store_first(to + c, load_first(to + c, lanes) + load_first(dx + token * op.channels + c, lanes),
                        lanes);
        });
    }
}

template <class T>
void run(const EmbeddingBackward<T>& op) {
    constexpr std::int64_t kCacheLine = 64 / sizeof(T);
    const int parts = usable_threads();
    parallel_tasks(parts, parts, [&](std::int64_t part, int) {
        scatter_columns(op, piece(op.channels, parts, part, kCacheLine));
    });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const Embedding<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Embedding<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const EmbeddingBackward<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const EmbeddingBackward<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
