// A transformer layer and its norms.
#include "model/emit_ops.h"

namespace atl {
namespace {

template <class... Ids>
std::vector<ValueId> list(Ids... ids) {
    return {ids...};
}

void append(std::vector<ValueId>& ids, const std::optional<ValueId>& id) {
    if (id) ids.push_back(*id);
}

}  // namespace

OpEmitter::SavedLayer OpEmitter::layer_forward(const LayerParts<Parameter>& layer, Stream& stream) {
    SavedLayer saved;
    saved.attention_norm = norm("attention_norm", layer.attention_norm, stream);
    saved.qkv = linear("qkv", layer.qkv, saved.attention_norm.output);
    if (shape_.kind == ModelKind::llama) {
        const auto rotated = view("rotated", saved.qkv);
        emit(StepPart::forward, {.kind = OpKind::rope,
                              .attributes = heads_,
                              .reads = {saved.qkv, inputs_.positions, rope_table_},
                              .writes = {rotated}});
        saved.qkv = rotated;
    }
    saved.attended = activation("attended", {tokens_, heads_.heads * shape_.head_width});
    saved.logsumexp = activation("logsumexp", {heads_.heads, tokens_});
    emit(StepPart::forward, {.kind = OpKind::attention,
                          .attributes = heads_,
                          .reads = {saved.qkv, inputs_.starts},
                          .writes = {saved.attended, saved.logsumexp}});
    stream.delta =
        scatter(StepPart::forward, "projection.own", linear("projection", layer.projection, saved.attended));
    saved.ffn_norm = norm("ffn_norm", layer.ffn_norm, stream);
    saved.up = linear("up", layer.up, saved.ffn_norm.output);
    saved.activated = activation("activated", {tokens_, here_.ffn.size()});
    emit(StepPart::forward, {.kind = shape_.kind == ModelKind::llama ? OpKind::swiglu : OpKind::gelu,
                          .reads = {saved.up},
                          .writes = {saved.activated}});
    stream.delta = scatter(StepPart::forward, "down.own", linear("down", layer.down, saved.activated));
    return saved;
}

ValueId OpEmitter::layer_backward(const LayerParts<Parameter>& layer, const SavedLayer& saved,
                                  ValueId dstream) {
    const auto ddown = gather(StepPart::backward_input, "ddown", dstream);
    const auto dactivated = linear_backward("down", layer.down, saved.activated, ddown);
    const auto dup = activation("dup", shape_of_value(saved.up));
    emit(StepPart::backward_input,
         {.kind = shape_.kind == ModelKind::llama ? OpKind::swiglu_backward : OpKind::gelu_backward,
          .reads = {dactivated, saved.up},
          .writes = {dup}});
    const auto dnormed = gathered_linear_backward("up", layer.up, saved.ffn_norm.output, dup);
    const auto dmiddle = norm_backward("ffn_norm", layer.ffn_norm, saved.ffn_norm, dnormed, dstream);
    const auto dprojection = gather(StepPart::backward_input, "dprojection", dmiddle);
    const auto dattended = linear_backward("projection", layer.projection, saved.attended, dprojection);
    const auto dqkv = attention_backward(saved, dattended);
    const auto dinput = gathered_linear_backward("qkv", layer.qkv, saved.attention_norm.output, dqkv);
    return norm_backward("attention_norm", layer.attention_norm, saved.attention_norm, dinput, dmiddle);
}

ValueId OpEmitter::attention_backward(const SavedLayer& saved, ValueId dattended) {
    const auto dqkv = activation("dqkv", shape_of_value(saved.qkv));
    emit(StepPart::backward_input,
         {.kind = OpKind::attention_backward,
          .attributes = heads_,
          .reads = {dattended, saved.qkv, saved.attended, saved.logsumexp, inputs_.starts},
          .writes = {dqkv}});
    if (shape_.kind != ModelKind::llama) return dqkv;
    const auto drotated = view("dqkv_rotated_back", dqkv);
    emit(StepPart::backward_input, {.kind = OpKind::rope_backward,
                                 .attributes = heads_,
                                 .reads = {dqkv, inputs_.positions, rope_table_},
                                 .writes = {drotated}});
    return drotated;
}

OpEmitter::SavedNorm OpEmitter::norm(const std::string& name, const NormParts<Parameter>& norm,
                                     Stream& stream) {
    const bool has_mean = norm.beta.has_value();
    auto reads = list(stream.sum);
    std::vector<ValueId> writes;
    if (stream.delta) {
        reads.push_back(*stream.delta);
        stream.sum = activation(name + ".sum", {own_tokens_.size(), shape_.hidden});
        writes.push_back(stream.sum);
    }
    reads.push_back(norm.gamma.weight);
    if (norm.beta) reads.push_back(norm.beta->weight);
    SavedNorm saved{
        stream.sum, std::nullopt, {}, activation(name + ".output", {own_tokens_.size(), shape_.hidden})};
    if (has_mean) saved.mean = activation(name + ".mean", {own_tokens_.size()});
    saved.rstd = activation(name + ".rstd", {own_tokens_.size()});
    writes.push_back(saved.output);
    append(writes, saved.mean);
    writes.push_back(saved.rstd);
    const auto plain = has_mean ? OpKind::layer_norm : OpKind::rms_norm;
    const auto with_add = has_mean ? OpKind::add_layer_norm : OpKind::add_rms_norm;
    emit(StepPart::forward, {.kind = stream.delta ? with_add : plain,
                          .attributes = NormAttributes{shape_.norm_epsilon},
                          .reads = reads,
                          .writes = writes});
    stream.delta.reset();
    saved.output = gather(StepPart::forward, name + ".gathered", saved.output);
    return saved;
}

ValueId OpEmitter::norm_backward(const std::string& name, const NormParts<Parameter>& norm,
                                 const SavedNorm& saved, ValueId doutput, std::optional<ValueId> dsum) {
    const auto dinput = activation(name + ".dinput", {own_tokens_.size(), shape_.hidden});
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
    emit(StepPart::backward_input, {.kind = norm.beta ? OpKind::layer_norm_backward : OpKind::rms_norm_backward,
                                 .attributes = accumulate,
                                 .reads = reads,
                                 .writes = writes});
    return dinput;
}

}  // namespace atl
