#include "engine/bind.h"
#include "kernels/attention.h"
#include "kernels/rope.h"

namespace atl {
namespace {

kernels::AttentionShape attention_shape(const BoundOperands& o, std::int64_t tokens) {
    const auto& heads = o.attributes<HeadAttributes>();
    return {tokens, heads.heads, heads.kv_heads, heads.head_width, o.threads()};
}

// reads: qkv, positions, table; writes: a view of qkv.
template <class T>
BoundCall bind_rope(const BoundOperands& o) {
    const auto& heads = o.attributes<HeadAttributes>();
    ATOLL_CHECK_EQ(static_cast<const void*>(o.read<T>(0)), static_cast<const void*>(o.write<T>(0)),
                   "op {} works in place", o.op().id);
    kernels::Rope<T> rope;
    rope.tokens = o.read_shape(0).at(0);
    rope.heads = heads.heads;
    rope.kv_heads = heads.kv_heads;
    rope.head_width = heads.head_width;
    rope.qkv = o.write<T>(0);
    rope.positions = o.read<std::int32_t>(1);
    rope.table = o.read<T>(2);
    rope.table_positions = o.read_shape(2).at(0);
    if (o.op().kind == OpKind::rope) return [rope] { kernels::rope(rope); };
    return [rope] { kernels::rope_backward(rope); };
}

template <class T>
BoundCall bind_attention_forward(const BoundOperands& o) {
    kernels::Attention<T> attention;
    attention.shape = attention_shape(o, o.read_shape(0).at(0));
    attention.qkv = o.read<T>(0);
    attention.starts = o.read<std::int32_t>(1);
    attention.out = o.write<T>(0);
    attention.lse = o.write<T>(1);
    attention.scratch = o.scratch();
    return [attention] { kernels::attention(attention); };
}

template <class T>
BoundCall bind_attention_backward(const BoundOperands& o) {
    kernels::AttentionBackward<T> attention;
    attention.shape = attention_shape(o, o.read_shape(0).at(0));
    attention.dout = o.read<T>(0);
    attention.qkv = o.read<T>(1);
    attention.out = o.read<T>(2);
    attention.lse = o.read<T>(3);
    attention.starts = o.read<std::int32_t>(4);
    attention.dqkv = o.write<T>(0);
    attention.scratch = o.scratch();
    return [attention] { kernels::attention_backward(attention); };
}

}  // namespace

template <class T>
BoundCall bind_attention(const BoundOperands& o) {
    switch (o.op().kind) {
        case OpKind::rope:
        case OpKind::rope_backward:
            return bind_rope<T>(o);
        case OpKind::attention:
            return bind_attention_forward<T>(o);
        default:
            ATOLL_CHECK(o.op().kind == OpKind::attention_backward);
            return bind_attention_backward<T>(o);
    }
}

template BoundCall bind_attention<float>(const BoundOperands&);
template BoundCall bind_attention<double>(const BoundOperands&);

}  // namespace atl
