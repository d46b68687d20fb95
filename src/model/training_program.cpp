#include "model/training_program.h"

#include "core/check.h"
#include "model/emit_ops.h"
#include "model/parameter_values.h"
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
    ATOLL_CHECK_EQ(parallel.ranks(), parallel.dp, "only data parallelism is emitted");
    const auto place = place_of(parallel, builder.program().rank);
    for (const auto stage : parallel.pipeline().stages_of(place.pp)) {
        const auto layers = stage_layers(shape, parallel, stage);
        const bool is_last = stage == parallel.stages() - 1;
        builder.add_stage({stage, stage == 0 ? kEmbeddingLayer : static_cast<std::int32_t>(layers.begin),
                           static_cast<std::int32_t>(layers.end) + (is_last ? 1 : 0)});
    }
}

// Sums every bucket over the data-parallel ranks with a ring, in place.
void emit_reductions(StepBuilder& builder, const std::vector<ValueId>& buckets, std::int32_t ranks) {
    if (ranks == 1) return;
    std::vector<Rank> members;
    for (std::int32_t rank = 0; rank < ranks; ++rank) members.push_back(Rank(rank));
    builder.add_group("dp", members);
    builder.open({Phase::reduction});
    for (const auto bucket : buckets) {
        const auto moved_bytes = 2 * (ranks - 1) * builder.program().value(bucket).bytes() / ranks;
        builder.add(Op{.kind = OpKind::all_reduce,
                       .attributes = CollectiveAttributes{"dp", 0},
                       .reads = {bucket},
                       .writes = {bucket},
                       .resource = Resource::link_intra,
                       .bytes = moved_bytes});
    }
}

void emit_optimizer(StepBuilder& builder, const std::vector<Parameter>& parameters,
                    const TrainingProgramOptions& options) {
    const auto scalars =
        builder.add(Value{.name = "scalars", .shape = {4}, .dtype = DType::f64, .role = Role::input});
    const auto norm2 =
        builder.add(Value{.name = "norm2", .shape = {1}, .dtype = DType::f64, .role = Role::output});
    builder.open({Phase::optimizer});
    const auto add = [&](Op op) {
        if (options.scratch_bytes) op.scratch_bytes = options.scratch_bytes(builder.program(), op);
        builder.add(std::move(op));
    };
    std::vector<ValueId> gradients;
    for (const auto& parameter : parameters) gradients.push_back(parameter.gradient);
    add(Op{.kind = OpKind::square_sum, .reads = gradients, .writes = {norm2}});
    for (const auto& p : parameters) {
        if (const auto* adamw = std::get_if<AdamwAttributes>(&options.optimizer)) {
            auto attributes = *adamw;
            if (!p.decays) attributes.weight_decay = 0;
            add(Op{.kind = OpKind::adamw,
                   .attributes = attributes,
                   .reads = {p.gradient, norm2, scalars, p.weight, p.first_moment, p.second_moment},
                   .writes = {p.weight, p.first_moment, p.second_moment}});
        } else {
            auto attributes = std::get<SgdAttributes>(options.optimizer);
            if (!p.decays) attributes.weight_decay = 0;
            add(Op{.kind = OpKind::sgd,
                   .attributes = attributes,
                   .reads = {p.gradient, norm2, scalars, p.weight},
                   .writes = {p.weight}});
        }
    }
}

}  // namespace

StepOps emit_training_step(const ModelShape& shape, const TrainingProgramOptions& options) {
    StepBuilder builder(options.rank, static_cast<std::int32_t>(shape.layers), options.micro_batches);
    add_stages(builder, shape, options.parallel, options.sequences * context_of(shape, options.context));
    auto parameters = add_parameters(builder, shape, options.dtype);
    const auto buckets = add_gradients(builder, parameters, options.bucket_bytes);
    if (std::holds_alternative<AdamwAttributes>(options.optimizer)) add_moments(builder, parameters);
    OpEmitter emitter(
        builder, shape,
        {options.sequences, context_of(shape, options.context), options.dtype, options.scratch_bytes},
        parameters);
    for (std::int32_t k = 0; k < options.micro_batches; ++k) emitter.emit_forward_and_backward(k);
    emit_reductions(builder, buckets, options.parallel.ranks());
    std::vector<Parameter> all;
    for_each_backward(parameters, [&](const Parameter& parameter) { all.push_back(parameter); });
    emit_optimizer(builder, all, options);
    return builder.take();
}

Program make_training_program(const ModelShape& shape, const TrainingProgramOptions& options) {
    return serial_schedule(emit_training_step(shape, options));
}

Program make_evaluation_program(const ModelShape& shape, const EvaluationProgramOptions& options) {
    StepBuilder builder(options.rank, static_cast<std::int32_t>(shape.layers), options.micro_batches);
    add_stages(builder, shape, options.parallel, options.sequences * context_of(shape, options.context));
    const auto parameters = add_parameters(builder, shape, options.dtype);
    OpEmitter emitter(
        builder, shape,
        {options.sequences, context_of(shape, options.context), options.dtype, options.scratch_bytes},
        parameters);
    for (std::int32_t k = 0; k < options.micro_batches; ++k) emitter.emit_forward(k);
    return serial_schedule(builder.take());
}

}  // namespace atl
