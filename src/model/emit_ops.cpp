#include "model/emit_ops.h"

#include <fmt/format.h>

#include "core/check.h"

namespace atl {
namespace {

HeadAttributes head_attributes(const ModelShape& shape) {
    return {static_cast<std::int32_t>(shape.heads), static_cast<std::int32_t>(shape.kv_heads),
            static_cast<std::int32_t>(shape.head_width)};
}

template <class... Ids>
std::vector<ValueId> list(Ids... ids) {
    return {ids...};
}

void append(std::vector<ValueId>& ids, const std::optional<ValueId>& id) {
    if (id) ids.push_back(*id);
}

}  // namespace

OpEmitter::OpEmitter(StepBuilder& builder, const ModelShape& shape, const EmitOptions& options,
                     const ModelParts<Parameter>& parameters)
    : builder_(builder),
      shape_(shape),
      options_(options),
      parameters_(parameters),
      tokens_(options.sequences * options.context),
      heads_(head_attributes(shape)) {
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
    layer_ = kEmbeddingLayer;
    inputs_ = add_inputs(micro_batch);
    Saved saved;
    Stream stream{activation("embedded", {tokens_, shape_.hidden}), std::nullopt};
    auto reads = list(inputs_.tokens, parameters_.token_embedding.weight);
    if (parameters_.position_embedding) {
        reads.push_back(inputs_.positions);
        reads.push_back(parameters_.position_embedding->weight);
    }
    emit(Phase::forward,
         {.kind = OpKind::embedding, .attributes = RowAttributes{}, .reads = reads, .writes = {stream.sum}});
    for (const auto& layer : parameters_.layers) {
        ++layer_;
        saved.layers.push_back(layer_forward(layer, stream));
    }
    ++layer_;
    saved.final_norm = norm("final_norm", parameters_.final_norm, stream);
    saved.logits = linear("logits", head(), saved.final_norm.output);
    auto writes = list(inputs_.loss);
    if (with_gradient) {
        saved.dlogits = view("dlogits", saved.logits);
        writes.push_back(saved.dlogits);
    }
    emit(Phase::forward,
         {.kind = OpKind::cross_entropy, .reads = {saved.logits, inputs_.targets}, .writes = writes});
    return saved;
}

OpEmitter::SavedLayer OpEmitter::layer_forward(const LayerParts<Parameter>& layer, Stream& stream) {
    SavedLayer saved;
    saved.attention_norm = norm("attention_norm", layer.attention_norm, stream);
    saved.qkv = linear("qkv", layer.qkv, saved.attention_norm.output);
    if (shape_.kind == ModelKind::llama) {
        const auto rotated = view("rotated", saved.qkv);
        emit(Phase::forward, {.kind = OpKind::rope,
                              .attributes = heads_,
                              .reads = {saved.qkv, inputs_.positions, rope_table_},
                              .writes = {rotated}});
        saved.qkv = rotated;
    }
    saved.attended = activation("attended", {tokens_, shape_.heads * shape_.head_width});
    saved.logsumexp = activation("logsumexp", {shape_.heads, tokens_});
    emit(Phase::forward, {.kind = OpKind::attention,
                          .attributes = heads_,
                          .reads = {saved.qkv, inputs_.starts},
                          .writes = {saved.attended, saved.logsumexp}});
    stream.delta = linear("projection", layer.projection, saved.attended);
    saved.ffn_norm = norm("ffn_norm", layer.ffn_norm, stream);
    saved.up = linear("up", layer.up, saved.ffn_norm.output);
    saved.activated = activation("activated", {tokens_, shape_.ffn});
    emit(Phase::forward, {.kind = shape_.kind == ModelKind::llama ? OpKind::swiglu : OpKind::gelu,
                          .reads = {saved.up},
                          .writes = {saved.activated}});
    stream.delta = linear("down", layer.down, saved.activated);
    return saved;
}

void OpEmitter::backward(const Saved& saved) {
    const auto doutput = linear_backward("logits", head(), saved.final_norm.output, saved.dlogits);
    auto dstream =
        norm_backward("final_norm", parameters_.final_norm, saved.final_norm, doutput, std::nullopt);
    for (std::size_t i = parameters_.layers.size(); i-- > 0;) {
        --layer_;
        dstream = layer_backward(parameters_.layers[i], saved.layers[i], dstream);
    }
    --layer_;
    embedding_backward(dstream);
}

ValueId OpEmitter::layer_backward(const LayerParts<Parameter>& layer, const SavedLayer& saved,
                                  ValueId dstream) {
    const auto dactivated = linear_backward("down", layer.down, saved.activated, dstream);
    const auto dup = activation("dup", shape_of_value(saved.up));
    emit(Phase::backward_input,
         {.kind = shape_.kind == ModelKind::llama ? OpKind::swiglu_backward : OpKind::gelu_backward,
          .reads = {dactivated, saved.up},
          .writes = {dup}});
    const auto dnormed = linear_backward("up", layer.up, saved.ffn_norm.output, dup);
    const auto dmiddle = norm_backward("ffn_norm", layer.ffn_norm, saved.ffn_norm, dnormed, dstream);
    const auto dattended = linear_backward("projection", layer.projection, saved.attended, dmiddle);
    const auto dqkv = attention_backward(saved, dattended);
    const auto dinput = linear_backward("qkv", layer.qkv, saved.attention_norm.output, dqkv);
    return norm_backward("attention_norm", layer.attention_norm, saved.attention_norm, dinput, dmiddle);
}

ValueId OpEmitter::attention_backward(const SavedLayer& saved, ValueId dattended) {
    const auto dqkv = activation("dqkv", shape_of_value(saved.qkv));
    emit(Phase::backward_input,
         {.kind = OpKind::attention_backward,
          .attributes = heads_,
          .reads = {dattended, saved.qkv, saved.attended, saved.logsumexp, inputs_.starts},
          .writes = {dqkv}});
    if (shape_.kind != ModelKind::llama) return dqkv;
    const auto drotated = view("dqkv_rotated_back", dqkv);
    emit(Phase::backward_input, {.kind = OpKind::rope_backward,
                                 .attributes = heads_,
                                 .reads = {dqkv, inputs_.positions, rope_table_},
                                 .writes = {drotated}});
    return drotated;
}

void OpEmitter::embedding_backward(ValueId dstream) {
    const auto into = [&](ValueId indices, const Parameter& table) {
        emit(Phase::backward_weight, {.kind = OpKind::embedding_backward,
                                      .attributes = accumulate_into(table.gradient),
                                      .reads = {indices, dstream},
                                      .writes = {table.gradient}});
    };
    if (parameters_.position_embedding) into(inputs_.positions, *parameters_.position_embedding);
    into(inputs_.tokens, parameters_.token_embedding);
}

OpEmitter::SavedNorm OpEmitter::norm(const std::string& name, const NormParts<Parameter>& norm,
                                     Stream& stream) {
    const bool has_mean = norm.beta.has_value();
    auto reads = list(stream.sum);
    std::vector<ValueId> writes;
    if (stream.delta) {
        reads.push_back(*stream.delta);
        stream.sum = activation(name + ".sum", {tokens_, shape_.hidden});
        writes.push_back(stream.sum);
    }
    reads.push_back(norm.gamma.weight);
    if (norm.beta) reads.push_back(norm.beta->weight);
    SavedNorm saved{stream.sum, std::nullopt, {}, activation(name + ".output", {tokens_, shape_.hidden})};
    if (has_mean) saved.mean = activation(name + ".mean", {tokens_});
    saved.rstd = activation(name + ".rstd", {tokens_});
    writes.push_back(saved.output);
    append(writes, saved.mean);
    writes.push_back(saved.rstd);
    const auto plain = has_mean ? OpKind::layer_norm : OpKind::rms_norm;
    const auto with_add = has_mean ? OpKind::add_layer_norm : OpKind::add_rms_norm;
    emit(Phase::forward, {.kind = stream.delta ? with_add : plain,
                          .attributes = NormAttributes{shape_.norm_epsilon},
                          .reads = reads,
                          .writes = writes});
    stream.delta.reset();
    return saved;
}

ValueId OpEmitter::norm_backward(const std::string& name, const NormParts<Parameter>& norm,
                                 const SavedNorm& saved, ValueId doutput, std::optional<ValueId> dsum) {
    const auto dinput = activation(name + ".dinput", {tokens_, shape_.hidden});
    auto reads = list(doutput, saved.input, norm.gamma.weight);
    append(reads, saved.mean);
    reads.push_back(saved.rstd);
    append(reads, dsum);
    auto writes = list(dinput, norm.gamma.gradient);
    const auto accumulate = accumulate_into(norm.gamma.gradient);
    if (norm.beta) {
        accumulate_into(norm.beta->gradient);
        writes.push_back(norm.beta->gradient);
    }
    emit(Phase::backward_input, {.kind = norm.beta ? OpKind::layer_norm_backward : OpKind::rms_norm_backward,
                                 .attributes = accumulate,
                                 .reads = reads,
                                 .writes = writes});
    return dinput;
}

ValueId OpEmitter::linear(const std::string& name, const LinearParts<Parameter>& linear, ValueId input) {
    const auto output = activation(name, {tokens_, shape_of_value(linear.weight.weight).front()});
    auto reads = list(input, linear.weight.weight);
    if (linear.bias) reads.push_back(linear.bias->weight);
    emit(Phase::forward, {.kind = OpKind::linear, .reads = reads, .writes = {output}});
    return output;
}

ValueId OpEmitter::linear_backward(const std::string& name, const LinearParts<Parameter>& linear,
                                   ValueId input, ValueId doutput) {
    const auto accumulate = accumulate_into(linear.weight.gradient);
    auto writes = list(linear.weight.gradient);
    if (linear.bias) {
        accumulate_into(linear.bias->gradient);
        writes.push_back(linear.bias->gradient);
    }
    // First, so that the input gradient can lie where the input was.
    emit(Phase::backward_weight, {.kind = OpKind::linear_backward_weight,
                                  .attributes = accumulate,
                                  .reads = {doutput, input},
                                  .writes = writes});
    const auto dinput = activation(name + ".dinput", shape_of_value(input));
    emit(Phase::backward_input, {.kind = OpKind::linear_backward_input,
                                 .reads = {doutput, linear.weight.weight},
                                 .writes = {dinput}});
    return dinput;
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
    inputs.loss = builder_.add(Value{.name = fmt::format("loss_{}", micro_batch),
                                     .shape = {1},
                                     .dtype = DType::f64,
                                     .role = Role::output});
    return inputs;
}

LinearParts<Parameter> OpEmitter::head() const {
    return {parameters_.head ? *parameters_.head : parameters_.token_embedding, std::nullopt};
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

void OpEmitter::emit(Phase phase, Op op) {
    op.flops = flops(op);
    op.bytes = touched_bytes(op);
    if (options_.scratch_bytes) op.scratch_bytes = options_.scratch_bytes(builder_.program(), op);
    builder_.open({phase, layer_, micro_batch_});
    builder_.add(std::move(op));
}

double OpEmitter::flops(const Op& op) const {
    const auto elements = [&](ValueId id) { return static_cast<double>(element_count(shape_of_value(id))); };
    const auto tokens = static_cast<double>(tokens_);
    // One matrix product over all (query, key) pairs of whole causal sequences.
    const double pairs = tokens * (static_cast<double>(options_.context) + 1) / 2;
    const double attention_product = 2 * pairs * static_cast<double>(shape_.heads * shape_.head_width);
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
