// From a model to the programs of a step. Pure functions; equal arguments give equal programs.
//
// Names of values, which hosts and checkpoints rely on:
//   inputs       tokens_K, targets_K, positions_K i32 [T], starts_K i32 [T+1] for micro-batch K; scalars f64 [4]; all
//                of them on every rank
//   outputs      loss_K f64 [1], the sum over this rank's micro-batch K, on ranks with the head: equal on all
//                tensor-parallel ranks, to be counted once; norm2 f64 [1], of the reduced gradients of the whole model
//   parameters   the logical tensor's name; packed ones ("layers.3.qkv", "layers.3.gate_up") have no LogicalBox
//                themselves, their parts are views that have one. A rank that holds several boxes of one tensor adds
//                the box to the name of each
//   gradients    "grad/" + parameter name, views of "bucket_0", "bucket_1", … in the order in which backward ends;
//                where updates are split (ParallelShape::zero) the rows that this rank updates are in "reduced/" + name
//   moments      "m/" and "v/" + parameter name, of the rows that this rank updates; none with sgd, and no "v/" of what
//                muon steps
//   state        "rope_table" [context, head width] (initial_values.h fills it)
// T = sequences × context tokens. Parameters, gradients and moments carry a LogicalBox: model_layout.h says which.
//
// Saved for backward, per layer: both residual sums, both norms' outputs and statistics, qkv after rotation,
// attention's output and logsumexp, the feed-forward's products and its activation. Nothing is recomputed.
#pragma once

#include <functional>
#include <variant>

#include "model/parallel_shape.h"
#include "program/step_ops.h"

namespace atl {

// Scratch that the kernel of an op needs; asked once per op, when its reads and writes are known.
using ScratchRule = std::function<std::int64_t(const Program&, const Op&)>;

// Muon steps every matrix inside a layer, each by itself; norms, biases, embeddings and the head go by AdamW. A matrix
// must be whole on each rank that holds it, and updated by all of them: neither tensor parallelism nor `zero`.
struct MuonOptimizer {
    MuonAttributes hidden;
    AdamwAttributes others;
};

struct TrainingProgramOptions {
    std::int64_t sequences = 1;      // of one micro-batch
    std::int64_t context = 0;        // tokens of a sequence, at most the model's; 0 = the model's
    std::int32_t micro_batches = 1;  // of this rank
    DType dtype = DType::f32;        // f32 or f64, of everything but indices, losses and scalars
    Rank rank;
    ParallelShape parallel;
    std::int64_t bucket_bytes = 25'000'000;  // a bucket closes when it holds at least this much
    // weight_decay is for tensors that decay; the others get 0.
    std::variant<AdamwAttributes, SgdAttributes, MuonOptimizer> optimizer = AdamwAttributes{};
    ScratchRule scratch_bytes;  // none = no op needs scratch
};

struct EvaluationProgramOptions {
    std::int64_t sequences = 1;
    std::int64_t context = 0;
    std::int32_t micro_batches = 1;
    DType dtype = DType::f32;
    Rank rank;
    ParallelShape parallel;
    ScratchRule scratch_bytes;
};

// The step's ops in blocks, for schedules to order.
StepOps emit_training_step(const ModelShape& shape, const TrainingProgramOptions& options);
// … in serial order.
Program make_training_program(const ModelShape& shape, const TrainingProgramOptions& options);
// Forward and losses alone.
Program make_evaluation_program(const ModelShape& shape, const EvaluationProgramOptions& options);

}  // namespace atl
