// What passes between ranks: pieces of activations inside a layer, the residual stream between stages.
#include "core/check.h"
#include "model/emit_ops.h"

namespace atl {

ValueId OpEmitter::gather(StepPart phase, const std::string& name, ValueId own) {
    if (!is_cut()) return own;
    const auto whole = activation(name, {tokens_, shape_of_value(own).back()});
    emit(phase, collectives_.make(OpKind::all_gather, collectives_.tensor_parallel(), own, whole));
    return whole;
}

ValueId OpEmitter::scatter(StepPart phase, const std::string& name, ValueId partial) {
    if (!is_cut()) return partial;
    const auto own = activation(name, {own_tokens_.size(), shape_of_value(partial).back()});
    emit(phase, collectives_.make(OpKind::reduce_scatter, collectives_.tensor_parallel(), partial, own));
    return own;
}

void OpEmitter::reduce(OpKind kind, ValueId value) {
    emit(StepPart::forward, collectives_.make(kind, collectives_.tensor_parallel(), value, value));
}

bool OpEmitter::is_here(std::int32_t stage) const {
    return options_.parallel.pipeline().rank_of(stage) == place_.pp;
}

void OpEmitter::send(StepPart phase, std::int32_t stage, ValueId value) {
    const auto peer = options_.parallel.pipeline().rank_of(stage);
    emit(phase,
         {.kind = OpKind::send,
          .attributes = PointToPointAttributes{rank_at(options_.parallel, {place_.tp, peer, place_.dp}), 0},
          .reads = {value},
          .resource = Resource::send,
          .bytes = builder_.program().value(value).bytes()});
}

ValueId OpEmitter::receive(StepPart phase, std::int32_t stage, const std::string& name) {
    const auto peer = options_.parallel.pipeline().rank_of(stage);
    const auto value = activation(name, {own_tokens_.size(), shape_.hidden});
    emit(phase,
         {.kind = OpKind::receive,
          .attributes = PointToPointAttributes{rank_at(options_.parallel, {place_.tp, peer, place_.dp}), 0},
          .writes = {value},
          .resource = Resource::receive,
          .bytes = builder_.program().value(value).bytes()});
    return value;
}

void OpEmitter::pass_stream(std::int32_t stage, const Stream& stream) {
    if (is_here(stage + 1)) {
        kept_streams_[stage] = stream;
        return;
    }
    auto sum = stream.sum;
    if (stream.delta) {
        sum = activation("sum", {own_tokens_.size(), shape_.hidden});
        emit(StepPart::forward, {.kind = OpKind::add, .reads = {stream.sum, *stream.delta}, .writes = {sum}});
    }
    send(StepPart::forward, stage + 1, sum);
}

OpEmitter::Stream OpEmitter::take_stream(std::int32_t stage) {
    if (is_here(stage)) return kept_streams_.at(stage);
    return {receive(StepPart::forward, stage, "received"), std::nullopt};
}

void OpEmitter::pass_gradient(std::int32_t stage, ValueId dstream) {
    if (is_here(stage))
        kept_gradients_[stage] = dstream;
    else
        send(StepPart::backward_input, stage, dstream);
}

ValueId OpEmitter::take_gradient(std::int32_t stage) {
    if (is_here(stage + 1)) return kept_gradients_.at(stage);
    return receive(StepPart::backward_input, stage + 1, "dreceived");
}

}  // namespace atl
