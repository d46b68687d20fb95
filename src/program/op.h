// The ops of a program: what each kind reads and writes, in which order, and its typed attributes.
//
// Plain data, no callables: parse(print(program)) == program. src/model emits ops, src/engine runs one
// function per kind, src/program orders, places and simulates them; this table is their contract.
//
// Letters: T tokens of a micro-batch, C hidden, F feed-forward, V vocabulary rows here, Q heads, K key/value
// heads, D head width, N elements. Matrices are row-major; linear weights are [out, in]. "+=" marks
// gradients: the first micro-batch overwrites (accumulate = false), later ones add. Parentheses mark reads
// and writes that may be absent.
//
//  kind                   reads                                        writes
//  embedding              indices[T], table[V,C] (, indices2, table2)  x[T,C]                    sum of rows
//  embedding_backward     indices[T], dx[T,C]                          dtable[V,C] +=
//  rms_norm               x[T,C], gamma[C]                             y[T,C], rstd[T]
//  add_rms_norm           x, delta[T,C], gamma                         sum[T,C], y, rstd         sum = x + delta
//  rms_norm_backward      dy, x, gamma, rstd (, dsum[T,C])             dx, dgamma +=             dx also gets dsum
//  layer_norm             x, gamma, beta                               y, mean[T], rstd[T]
//  add_layer_norm         x, delta, gamma, beta                        sum, y, mean, rstd
//  layer_norm_backward    dy, x, gamma, mean, rstd (, dsum)            dx, dgamma +=, dbeta +=
//  linear                 x[T,I], w[O,I] (, bias[O])                   y[T,O]
//  linear_backward_input  dy[T,O], w[O,I]                              dx[T,I]
//  linear_backward_weight dy[T,O], x[T,I]                              dw[O,I] += (, dbias[O] +=)
//  rope                   qkv[T,(Q+2K)D], positions[T], table[P,D]     rotated[T,(Q+2K)D]        a view of qkv
//  rope_backward          dqkv, positions, table                       drotated                  a view of dqkv
//  attention              qkv[T,(Q+2K)D], starts[T+1]                  out[T,QD], lse[Q,T]
//  attention_backward     dout, qkv, out, lse, starts                  dqkv[T,(Q+2K)D]
//  swiglu                 gate_up[T,2F]                                act[T,F]                  silu(gate) * up
//  swiglu_backward        dact[T,F], gate_up                           dgate_up[T,2F]
//  gelu                   x[T,F]                                       y[T,F]                    tanh form
//  gelu_backward          dy, x                                        dx
//  add                    a[N], b[N]                                   sum[N]                    may be a
//  cross_entropy          logits[T,V], targets[T]                      loss[1] f64 (, dlogits)   a view of logits
//  logits_max             logits[T,V]                                  max[T]                    of the rows here
//  logits_sum             logits[T,V], targets[T], max[T]              sums[2T]                  exps, then targets
//  cross_entropy_parallel logits, targets, max, sums                   loss[1] f64 (, dlogits)   a view of logits
//  square_sum             x1, x2, ... (gradients)                      sum[1] f64
//  adamw                  dw[N], norm2[1], scalars[4], w, m, v         w, m, v                   in place
//  sgd                    dw[N], norm2[1], scalars[4], w               w                         in place
//  muon                   dw[R,C], norm2[1], scalars[4], w, m          w, m                      in place
//  all_reduce             x[N]                                         x[N], the same value      sum over the group
//  all_reduce_max         x[N]                                         x[N], the same value      maximum over it
//  all_gather             piece[T_r,C]                                 whole[T,C]                pieces by rank
//  reduce_scatter         whole[T,C]                                   piece[T_r,C]              of the group's sum
//  broadcast              x[N]                                         x[N], the same value      from its first rank
//  send                   x[N]                                         -                         to one rank
//  receive                -                                            x[N]                      from one rank
//
// indices, positions, targets, starts are i32. A target < 0 has no loss. starts = first token of each
// document, then T until the end (cu_seqlens, padded). A qkv row is q heads, then k heads, then v heads; a
// gate_up row is gate, then up. The rope table holds cosines, then sines: [P positions, D/2 + D/2]; the halves
// of a head rotate against each other, as in Llama. loss is the *sum* of token losses, and every gradient is
// that of the sum. scalars (f64) = learning rate, optimizer step counted from 1, tokens with a loss in the
// global batch, 0. An op that works in place writes a view of what it reads, and is its last reader.
//
// A vocabulary cut by rows: V counts the rows here, and `first_row` is the first one's number. embedding gives 0 for
// an index whose row is elsewhere, embedding_backward skips it. logits_sum gives the sum of exp(logit - max) over
// the rows here and, for each target, its logit - max, or 0 if that is elsewhere; all_reduce_max and all_reduce then
// make them those of the whole vocabulary (Megatron-LM, Shoeybi et al. 2019, section 3).
// all_gather and reduce_scatter cut dimension 0 into nearly equal ranges, as layout's split() does. The piece of an
// all_gather may be a view of its own place in the whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "program/value.h"

namespace atl {

using OpId = StrongId<struct OpIdTag, std::int32_t>;

enum class OpKind : std::uint8_t {
    embedding,
    embedding_backward,
    rms_norm,
    add_rms_norm,
    rms_norm_backward,
    layer_norm,
    add_layer_norm,
    layer_norm_backward,
    linear,
    linear_backward_input,
    linear_backward_weight,
    rope,
    rope_backward,
    attention,
    attention_backward,
    swiglu,
    swiglu_backward,
    gelu,
    gelu_backward,
    add,
    cross_entropy,
    logits_max,
    logits_sum,
    cross_entropy_parallel,
    square_sum,
    adamw,
    sgd,
    muon,
    all_reduce,
    all_reduce_max,
    all_gather,
    reduce_scatter,
    broadcast,
    send,
    receive,
};

// What an op occupies. Ops of one resource are issued in the order in which they stand in the program, and end in
// this order. Sends and receives are posted without waiting for the end of those before them, so that none holds
// up another's transfer; the others work one at a time.
enum class Resource : std::uint8_t { compute, link_intra, link_inter, copy, host, link_wan, send, receive };
inline constexpr std::size_t kResources = 8;

// Whether ops of this resource are posted ahead: sends and receives.
inline bool posts_ahead(Resource resource) {
    return resource == Resource::send || resource == Resource::receive;
}

std::string_view name(OpKind kind);
std::string_view name(Resource resource);
std::optional<OpKind> op_kind_from_name(std::string_view text);
std::optional<Resource> resource_from_name(std::string_view text);

struct NoAttributes {
    bool operator==(const NoAttributes&) const = default;
};
// Ops that write gradients.
struct AccumulateAttributes {
    bool accumulate = false;
    std::int64_t first_row = 0;  // embedding_backward
    bool operator==(const AccumulateAttributes&) const = default;
};
// Ops on a vocabulary that may be cut by rows, but for embedding_backward.
struct RowAttributes {
    std::int64_t first_row = 0;
    std::int64_t all_rows =
        0;  // of the whole vocabulary, which indices and targets must lie in; 0 = it is not cut
    bool operator==(const RowAttributes&) const = default;
};
struct NormAttributes {
    double epsilon = 1e-5;
    bool operator==(const NormAttributes&) const = default;
};
// rope, attention and their backwards.
struct HeadAttributes {
    std::int32_t heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t head_width = 0;
    bool operator==(const HeadAttributes&) const = default;
};
// Decoupled weight decay (Loshchilov & Hutter, ICLR 2019). The gradient used is
// dw · min(1, grad_clip / norm) / tokens with norm = sqrt(norm2) / tokens; grad_clip 0 = no clipping.
// norm2 not finite: nothing is written.
struct AdamwAttributes {
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0.0;
    double grad_clip = 0.0;
    bool operator==(const AdamwAttributes&) const = default;
};
// Plain gradient descent; gradient scaling, clipping and refusal as for adamw.
struct SgdAttributes {
    double weight_decay = 0.0;
    double grad_clip = 0.0;
    bool operator==(const SgdAttributes&) const = default;
};
// Of one whole matrix: orthogonalised momentum (kernels/muon.h). Gradient scaling, clipping and refusal as for adamw.
struct MuonAttributes {
    double momentum = 0.95;
    double weight_decay = 0.0;
    double grad_clip = 0.0;
    bool operator==(const MuonAttributes&) const = default;
};
// Collectives. Ranks of a group are sorted; `sequence` counts the group's collectives in issue order.
struct CollectiveAttributes {
    std::string group;  // "dp", "tp", … or "world"
    std::int32_t sequence = 0;
    bool operator==(const CollectiveAttributes&) const = default;
};

// send, receive: the n-th send to a rank meets that rank's n-th receive from here. `sequence` is n, in issue order.
struct PointToPointAttributes {
    Rank peer;
    std::int32_t sequence = 0;
    bool operator==(const PointToPointAttributes&) const = default;
};

using OpAttributes =
    std::variant<NoAttributes, AccumulateAttributes, NormAttributes, HeadAttributes, AdamwAttributes,
                 SgdAttributes, MuonAttributes, CollectiveAttributes, RowAttributes, PointToPointAttributes>;

// The attributes an op of this kind carries, at their defaults.
OpAttributes default_attributes(OpKind kind);
// How many values it reads and writes.
struct OpSignature {
    int least_reads = 0;
    int most_reads = 0;
    int least_writes = 0;
    int most_writes = 0;
};
OpSignature signature(OpKind kind);
// Whether an op of this kind may write bytes that it reads. Ops that accumulate read what they write in any case.
bool works_in_place(OpKind kind);
bool is_collective(OpKind kind);      // of a whole group
bool is_point_to_point(OpKind kind);  // send, receive

struct Op {
    OpId id;
    OpKind kind = OpKind::add;
    OpAttributes attributes;
    std::vector<ValueId> reads;
    std::vector<ValueId> writes;
    std::int32_t strand = 0;
    std::int32_t layer = -1;        // -1: outside the layers
    std::int32_t micro_batch = -1;  // -1: once a step
    Resource resource = Resource::compute;
    double flops = 0;
    std::int64_t bytes = 0;          // moved over the op's link, or through memory for compute
    std::int64_t scratch_bytes = 0;  // placed like a value that lives for this op alone
    std::vector<OpId> after;         // must have finished, beyond what data and issue order say

    bool operator==(const Op&) const = default;
};

}  // namespace atl
