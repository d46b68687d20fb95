#include "model/training_program.h"

#include <algorithm>

#include "core/check.h"
#include "model/emit_ops.h"
#include "model/gradients.h"
#include "program/schedule.h"

namespace atl {
namespace {

std::int64_t context_of(const ModelShape& shape, std::int64_t context) {
    ATOLL_CHECK_LE(context, shape.context);
    return context > 0 ? context : shape.context;
}

void add_stages(StepBuilder& builder, const ModelShape& shape, const ParallelShape& parallel,
                std::int64_t tokens) {
    const auto wrong = problems(shape, parallel, tokens);
    ATOLL_CHECK(wrong.empty(), "{}", wrong.front());
    const auto place = place_of(parallel, builder.program().rank);
    for (const auto stage : parallel.pipeline().stages_of(place.pp)) {
        const auto layers = stage_layers(shape, parallel, stage);
        const bool is_last = stage == parallel.stages() - 1;
        builder.add_stage({stage, stage == 0 ? kEmbeddingLayer : static_cast<std::int32_t>(layers.begin),
                           static_cast<std::int32_t>(layers.end) + (is_last ? 1 : 0)});
    }
}

// Five rounds of three products, of the matrix with itself or with squares of its shorter side.
double orthogonalisation_flops(const Shape& shape) {
    const auto rows = static_cast<double>(shape.front());
    const auto columns = static_cast<double>(shape.back());
    const double square = std::min(rows, columns) * std::min(rows, columns);
    return 5 * (4 * square * std::max(rows, columns) + 2 * square * std::min(rows, columns));
}

// The norm of all gradients, each counted once over the ranks.
void emit_norm(StepBuilder& builder, Collectives& collectives, Gradients& gradients, ValueId norm2) {
    builder.add(Op{.kind = OpKind::square_sum, .reads = gradients.add_counted(), .writes = {norm2}});
    if (gradients.is_counted_once())
        builder.add(collectives.make(OpKind::all_reduce, collectives.world(), norm2, norm2));
}

void emit_update(StepBuilder& builder, Collectives& collectives, const TrainingProgramOptions& options,
                 const ParameterUpdate& update, const std::vector<ValueId>& facts) {
    std::vector<ValueId> reads{update.gradient}, writes{update.weight};
    reads.insert(reads.end(), facts.begin(), facts.end());
    const auto add = [&](OpKind kind, auto attributes) {
        if (!update.decays) attributes.weight_decay = 0;
        reads.insert(reads.end(), writes.begin(), writes.end());
        Op op{.kind = kind, .attributes = attributes, .reads = reads, .writes = writes};
        if (kind == OpKind::muon)
            op.flops = orthogonalisation_flops(builder.program().value(update.weight).shape);
        if (options.scratch_bytes) op.scratch_bytes = options.scratch_bytes(builder.program(), op);
        builder.add(std::move(op));
    };
    if (update.first_moment) writes.push_back(*update.first_moment);
    if (update.second_moment) writes.push_back(*update.second_moment);
    const auto* muon = std::get_if<MuonOptimizer>(&options.optimizer);
    if (const auto* sgd = std::get_if<SgdAttributes>(&options.optimizer))
        add(OpKind::sgd, *sgd);
    else if (muon != nullptr && !update.second_moment)
        add(OpKind::muon, muon->hidden);
    else
        add(OpKind::adamw, muon != nullptr ? muon->others : std::get<AdamwAttributes>(options.optimizer));
    if (update.gathered_weight)
        builder.add(
            collectives.make(OpKind::all_gather, update.holders, update.weight, *update.gathered_weight));
}

void emit_optimizer(StepBuilder& builder, Collectives& collectives, Gradients& gradients,
                    const std::vector<ParameterUpdate>& updates, const TrainingProgramOptions& options) {
    const auto scalars =
        builder.add(Value{.name = "scalars", .shape = {4}, .dtype = DType::f64, .role = Role::input});
    const auto norm2 =
        builder.add(Value{.name = "norm2", .shape = {1}, .dtype = DType::f64, .role = Role::output});
    builder.open({StepPart::optimizer});
    gradients.emit_late_reductions();
    emit_norm(builder, collectives, gradients, norm2);
    for (const auto& update : updates) emit_update(builder, collectives, options, update, {norm2, scalars});
}

}  // namespace

StepOps emit_training_step(const ModelShape& shape, const TrainingProgramOptions& options) {
    const auto context = context_of(shape, options.context);
    StepBuilder builder(options.rank, static_cast<std::int32_t>(shape.layers), options.micro_batches);
    add_stages(builder, shape, options.parallel, options.sequences * context);
    Collectives collectives(builder, options.parallel);
    auto parameters =
        add_parameters(builder, rank_parts(shape, options.parallel, options.rank), options.dtype);
    Gradients gradients(builder, collectives, shape, options.parallel);
    gradients.add(parameters, options.bucket_bytes);
    const auto moments = std::holds_alternative<SgdAttributes>(options.optimizer)   ? Moments::none
                         : std::holds_alternative<MuonOptimizer>(options.optimizer) ? Moments::one_of_hidden
                                                                                    : Moments::two;
    const auto updates = gradients.add_updates(moments);
    OpEmitter emitter(builder, collectives, shape,
                      {options.sequences, context, options.dtype, options.scratch_bytes, options.parallel},
                      parameters);
    for (std::int32_t k = 0; k < options.micro_batches; ++k) emitter.emit_forward_and_backward(k);
    gradients.emit_reductions();
    emit_optimizer(builder, collectives, gradients, updates, options);
    return builder.take();
}

Program make_training_program(const ModelShape& shape, const TrainingProgramOptions& options) {
    return serial_schedule(emit_training_step(shape, options));
}

Program make_evaluation_program(const ModelShape& shape, const EvaluationProgramOptions& options) {
    const auto context = context_of(shape, options.context);
    StepBuilder builder(options.rank, static_cast<std::int32_t>(shape.layers), options.micro_batches);
    add_stages(builder, shape, options.parallel, options.sequences * context);
    Collectives collectives(builder, options.parallel);
    const auto parameters =
        add_parameters(builder, rank_parts(shape, options.parallel, options.rank), options.dtype);
    OpEmitter emitter(builder, collectives, shape,
                      {options.sequences, context, options.dtype, options.scratch_bytes, options.parallel},
                      parameters);
    for (std::int32_t k = 0; k < options.micro_batches; ++k) emitter.emit_forward(k);
    return serial_schedule(builder.take());
}

}  // namespace atl
