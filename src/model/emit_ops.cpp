#include "model/emit_ops.h"

#include <fmt/format.h>

#include "core/check.h"

namespace atl {
namespace {

HeadAttributes head_attributes(const ModelShape& shape, const RankShape& here) {
    return {static_cast<std::int32_t>(here.heads.size()), static_cast<std::int32_t>(here.kv_heads.size()),
            static_cast<std::int32_t>(shape.head_width)};
}

}  // namespace

OpEmitter::OpEmitter(StepBuilder& builder, Collectives& collectives, const ModelShape& shape,
                     const EmitOptions& options, const ModelParts<Parameter>& parameters)
    : builder_(builder),
      collectives_(collectives),
      shape_(shape),
      options_(options),
      parameters_(parameters),
      place_(place_of(options.parallel, builder.program().rank)),
      here_(rank_shape(shape, options.parallel, builder.program().rank)),
      tokens_(options.sequences * options.context),
      own_tokens_(nearly_equal_range(tokens_, options.parallel.tp, place_.tp)),
      heads_(head_attributes(shape, here_)) {
    if (shape.kind == ModelKind::llama)
        rope_table_ = builder_.add(Value{.name = "rope_table",
                                         .shape = {options.context, shape.head_width},
                                         .dtype = options.dtype,
                                         .role = Role::state});
}

void OpEmitter::emit_forward(std::int32_t micro_batch) {
    forward(micro_batch, false);
}

void OpEmitter::emit_forward_and_backward(std::int32_t micro_batch) {
    backward(forward(micro_batch, true));
}

OpEmitter::Saved OpEmitter::forward(std::int32_t micro_batch, bool with_gradient) {
    micro_batch_ = micro_batch;
    inputs_ = add_inputs(micro_batch);
    Saved saved;
    auto layer = parameters_.layers.begin();
    for (const auto stage : here_.stages) {
        const auto layers = stage_layers(shape_, options_.parallel, stage);
        layer_ = stage == 0 ? kEmbeddingLayer : static_cast<std::int32_t>(layers.begin);
        auto stream = stage == 0 ? embedding() : take_stream(stage - 1);
        for (auto number = layers.begin; number < layers.end; ++number, ++layer) {
            layer_ = static_cast<std::int32_t>(number);
            ATOLL_CHECK_EQ(layer->layer, number);
            saved.layers.emplace(number, layer_forward(*layer, stream));
        }
        if (stage < options_.parallel.stages() - 1) {
            pass_stream(stage, stream);
        } else {
            layer_ = static_cast<std::int32_t>(shape_.layers);
            head_forward(stream, with_gradient, saved);
        }
    }
    return saved;
}

void OpEmitter::backward(const Saved& saved) {
    auto layer = parameters_.layers.rbegin();
    for (auto stage = here_.stages.rbegin(); stage != here_.stages.rend(); ++stage) {
        const auto layers = stage_layers(shape_, options_.parallel, *stage);
        const bool is_last = *stage == options_.parallel.stages() - 1;
        layer_ = static_cast<std::int32_t>(is_last ? layers.end : layers.end - 1);
        if (layers.size() == 0 && !is_last) layer_ = kEmbeddingLayer;
        auto dstream = is_last ? head_backward(saved) : take_gradient(*stage);
        for (auto number = layers.end; number-- > layers.begin; ++layer) {
            layer_ = static_cast<std::int32_t>(number);
            dstream = layer_backward(*layer, saved.layers.at(number), dstream);
        }
        if (*stage > 0) {
            pass_gradient(*stage - 1, dstream);
        } else {
            layer_ = kEmbeddingLayer;
            embedding_backward(dstream);
        }
    }
}

MicroBatchValues OpEmitter::add_inputs(std::int32_t micro_batch) {
    const auto input = [&](const char* name, std::int64_t count) {
        return builder_.add(Value{.name = fmt::format("{}_{}", name, micro_batch),
                                  .shape = {count},
                                  .dtype = DType::i32,
                                  .role = Role::input});
    };
    MicroBatchValues inputs;
    inputs.tokens = input("tokens", tokens_);
    inputs.targets = input("targets", tokens_);
    inputs.positions = input("positions", tokens_);
    inputs.starts = input("starts", tokens_ + 1);
    inputs.own_positions = inputs.positions;
    if (is_cut() && here_.has_embedding && parameters_.position_embedding)
        inputs.own_positions = add_rows(builder_, inputs.positions, own_tokens_);
    if (!here_.has_head) return inputs;
    inputs.loss = builder_.add(Value{.name = fmt::format("loss_{}", micro_batch),
                                     .shape = {1},
                                     .dtype = DType::f64,
                                     .role = Role::output});
    return inputs;
}

ValueId OpEmitter::activation(const std::string& name, Shape shape) {
    std::string place = fmt::format("mb{}.", micro_batch_);
    if (layer_ >= 0 && layer_ < static_cast<std::int32_t>(shape_.layers))
        place += fmt::format("layer{}.", layer_);
    return builder_.add(Value{
        .name = place + name, .shape = std::move(shape), .dtype = options_.dtype, .role = Role::activation});
}

ValueId OpEmitter::view(const std::string& name, ValueId base) {
    Value value = builder_.program().value(base);
    value.name = value.name.substr(0, value.name.rfind('.') + 1) + name;
    value.view_of = ValueView{base, 0};
    return builder_.add(std::move(value));
}

void OpEmitter::emit(StepPart phase, Op op) {
    op.flops = flops(op);
    if (op.resource == Resource::compute) op.bytes = touched_bytes(op);
    if (options_.scratch_bytes) op.scratch_bytes = options_.scratch_bytes(builder_.program(), op);
    builder_.open({phase, layer_, micro_batch_});
    builder_.add(std::move(op));
}

double OpEmitter::flops(const Op& op) const {
    const auto elements = [&](ValueId id) { return static_cast<double>(element_count(shape_of_value(id))); };
    const auto tokens = static_cast<double>(tokens_);
    // One matrix product over all (query, key) pairs of whole causal sequences.
    const double pairs = tokens * (static_cast<double>(options_.context) + 1) / 2;
    const double attention_product = 2 * pairs * static_cast<double>(heads_.heads * shape_.head_width);
    switch (op.kind) {
        case OpKind::linear:
        case OpKind::linear_backward_input:
            return 2 * tokens * elements(op.reads[1]);
        case OpKind::linear_backward_weight:
            return 2 * tokens * elements(op.writes[0]);
        case OpKind::attention:
            return 2 * attention_product;
        case OpKind::attention_backward:
            return 5 * attention_product;  // the scores once more, then four gradients
        default:
            return 0;
    }
}

std::int64_t OpEmitter::touched_bytes(const Op& op) const {
    const auto bytes = [&](ValueId id) { return builder_.program().value(id).bytes(); };
    if (op.kind == OpKind::embedding) {
        // One row of each table per token, and their sum.
        const auto tables = static_cast<std::int64_t>(op.reads.size()) / 2;
        return tables * bytes(op.reads[0]) + (tables + 1) * bytes(op.writes[0]);
    }
    if (op.kind == OpKind::embedding_backward) {
        // A row is read, added to and written per token; overwriting clears the table first.
        const bool clears = !std::get<AccumulateAttributes>(op.attributes).accumulate;
        return bytes(op.reads[0]) + 3 * bytes(op.reads[1]) + (clears ? bytes(op.writes[0]) : 0);
    }
    return 0;
}

AccumulateAttributes OpEmitter::accumulate_into(ValueId gradient) {
    return {!written_gradients_.insert(gradient).second};
}

}  // namespace atl
