#include "engine/bind.h"
#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_parallel.h"
#include "kernels/embedding.h"

namespace atl {
namespace {

template <class T>
BoundCall bind_embedding(const BoundOperands& o) {
    kernels::Embedding<T> embedding;
    embedding.tokens = o.written_shape(0).at(0);
    embedding.channels = o.written_shape(0).at(1);
    const auto& rows = o.attributes<RowAttributes>();
    embedding.first = {o.read<std::int32_t>(0), o.read<T>(1), o.read_shape(1).at(0), rows.first_row,
                       rows.all_rows};
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
    embedding.first_entry = o.attributes<AccumulateAttributes>().first_row;
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

template <class T>
BoundCall bind_logits_max(const BoundOperands& o) {
    const kernels::LogitsMax<T> largest{o.read_shape(0).at(0), o.read_shape(0).at(1), o.read<T>(0),
                                        o.write<T>(0)};
    return [largest] { kernels::logits_max(largest); };
}

template <class T>
BoundCall bind_logits_sum(const BoundOperands& o) {
    const auto& rows = o.attributes<RowAttributes>();
    kernels::LogitsSum<T> sum;
    sum.rows = o.read_shape(0).at(0);
    sum.vocab = o.read_shape(0).at(1);
    sum.first_row = rows.first_row;
    sum.all_rows = rows.all_rows > 0 ? rows.all_rows : sum.vocab;
    sum.logits = o.read<T>(0);
    sum.targets = o.read<std::int32_t>(1);
    sum.max = o.read<T>(2);
    sum.sums = o.write<T>(0);
    return [sum] { kernels::logits_sum(sum); };
}

template <class T>
BoundCall bind_cross_entropy_parallel(const BoundOperands& o) {
    kernels::CrossEntropyParallel<T> entropy;
    entropy.rows = o.read_shape(0).at(0);
    entropy.vocab = o.read_shape(0).at(1);
    entropy.first_row = o.attributes<RowAttributes>().first_row;
    entropy.logits = o.read<T>(0);
    entropy.targets = o.read<std::int32_t>(1);
    entropy.max = o.read<T>(2);
    entropy.sums = o.read<T>(3);
    entropy.loss = o.write<double>(0);
    if (o.write_count() > 1) {
        entropy.dlogits = o.write<T>(1);
        ATOLL_CHECK_EQ(static_cast<const void*>(entropy.logits), static_cast<const void*>(entropy.dlogits),
                       "op {} works in place", o.op().id);
    }
    return [entropy] { kernels::cross_entropy_parallel(entropy); };
}

}  // namespace

template <class T>
BoundCall bind_vocabulary(const BoundOperands& o) {
    switch (o.op().kind) {
        case OpKind::embedding:
            return bind_embedding<T>(o);
        case OpKind::embedding_backward:
            return bind_embedding_backward<T>(o);
        case OpKind::logits_max:
            return bind_logits_max<T>(o);
        case OpKind::logits_sum:
            return bind_logits_sum<T>(o);
        case OpKind::cross_entropy_parallel:
            return bind_cross_entropy_parallel<T>(o);
        default:
            ATOLL_CHECK(o.op().kind == OpKind::cross_entropy);
            return bind_cross_entropy<T>(o);
    }
}

template BoundCall bind_vocabulary<float>(const BoundOperands&);
template BoundCall bind_vocabulary<double>(const BoundOperands&);

}  // namespace atl
