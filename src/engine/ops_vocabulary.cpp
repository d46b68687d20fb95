#include "engine/bind.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"

namespace atl {
namespace {

template <class T>
BoundCall bind_embedding(const BoundOperands& o) {
    kernels::Embedding<T> embedding;
    embedding.tokens = o.written_shape(0).at(0);
    embedding.channels = o.written_shape(0).at(1);
    embedding.first = {o.read<std::int32_t>(0), o.read<T>(1), o.read_shape(1).at(0)};
    if (o.read_count() > 2) {
        embedding.second = {o.read<std::int32_t>(2), o.read<T>(3), o.read_shape(3).at(0)};
    }
    embedding.x = o.write<T>(0);
    return [embedding] { kernels::embedding(embedding); };
}

template <class T>
BoundCall bind_embedding_backward(const BoundOperands& o) {
    kernels::EmbeddingBackward<T> embedding;
    embedding.tokens = o.read_shape(1).at(0);
    embedding.channels = o.read_shape(1).at(1);
    embedding.entries = o.written_shape(0).at(0);
    embedding.indices = o.read<std::int32_t>(0);
    embedding.dx = o.read<T>(1);
    embedding.dtable = o.write<T>(0);
    embedding.accumulate = o.accumulate();
    return [embedding] { kernels::embedding_backward(embedding); };
}

template <class T>
BoundCall bind_cross_entropy(const BoundOperands& o) {
    const std::int64_t rows = o.read_shape(0).at(0);
    const std::int64_t vocab = o.read_shape(0).at(1);
    double* loss = o.write<double>(0);
    if (o.write_count() == 1) {
        const kernels::CrossEntropyLoss<T> entropy{rows, vocab, o.read<T>(0), o.read<std::int32_t>(1)};
        return [entropy, loss] { *loss = kernels::cross_entropy_loss(entropy); };
    }
    ATOLL_CHECK_EQ(static_cast<const void*>(o.read<T>(0)), static_cast<const void*>(o.write<T>(1)),
                   "op {} works in place", o.op().id);
    const kernels::CrossEntropy<T> entropy{rows, vocab, o.write<T>(1), o.read<std::int32_t>(1)};
    return [entropy, loss] { *loss = kernels::cross_entropy(entropy); };
}

}  // namespace

template <class T>
BoundCall bind_vocabulary(const BoundOperands& o) {
    switch (o.op().kind) {
        case OpKind::embedding:
            return bind_embedding<T>(o);
        case OpKind::embedding_backward:
            return bind_embedding_backward<T>(o);
        default:
            ATOLL_CHECK(o.op().kind == OpKind::cross_entropy);
            return bind_cross_entropy<T>(o);
    }
}

template BoundCall bind_vocabulary<float>(const BoundOperands&);
template BoundCall bind_vocabulary<double>(const BoundOperands&);

}  // namespace atl
