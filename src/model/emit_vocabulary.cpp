// The two ends of a model: embedding, and head with loss. Ranks that share a layer share the vocabulary by rows.
#include "core/check.h"
#include "model/emit_ops.h"

namespace atl {

RowAttributes OpEmitter::vocabulary_rows() const {
    if (!is_cut()) return {};
    return {.first_row = here_.vocab.begin, .all_rows = shape_.vocab};
}

OpEmitter::Stream OpEmitter::embedding() {
    const auto look_up = [&](const char* name, const std::vector<ValueId>& reads, RowAttributes rows) {
        const auto found = activation(name, {shape_of_value(reads.front()).front(), shape_.hidden});
        emit(StepPart::forward,
             {.kind = OpKind::embedding, .attributes = rows, .reads = reads, .writes = {found}});
        return found;
    };
    std::vector<ValueId> tokens{inputs_.tokens, parameters_.token_embedding->weight};
    std::vector<ValueId> positions;
    if (parameters_.position_embedding)
        positions = {inputs_.own_positions, parameters_.position_embedding->weight};
    if (!is_cut()) {
        tokens.insert(tokens.end(), positions.begin(), positions.end());
        return {look_up("embedded", tokens, {}), std::nullopt};
    }
    const auto partial = look_up("embedded", tokens, vocabulary_rows());
    Stream stream{scatter(StepPart::forward, "embedded.own", partial), std::nullopt};
    if (!positions.empty()) stream.delta = look_up("positions", positions, {});
    return stream;
}

void OpEmitter::embedding_backward(ValueId dstream) {
    const auto into = [&](ValueId indices, ValueId doutput, const Parameter& table, std::int64_t first_row) {
        auto attributes = accumulate_into(table.gradient);
        attributes.first_row = first_row;
        emit(StepPart::backward_weight, {.kind = OpKind::embedding_backward,
                                      .attributes = attributes,
                                      .reads = {indices, doutput},
                                      .writes = {table.gradient}});
    };
    if (parameters_.position_embedding)
        into(inputs_.own_positions, dstream, *parameters_.position_embedding, 0);
    const auto dembedded = gather(StepPart::backward_input, "dembedded", dstream);
    into(inputs_.tokens, dembedded, *parameters_.token_embedding, vocabulary_rows().first_row);
}

LinearParts<Parameter> OpEmitter::head() const {
    auto weight = parameters_.head ? *parameters_.head : *parameters_.token_embedding;
    if (weight.head_gradient) weight.gradient = *weight.head_gradient;
    return {weight, std::nullopt};
}

void OpEmitter::head_forward(Stream& stream, bool with_gradient, Saved& saved) {
    saved.final_norm = norm("final_norm", *parameters_.final_norm, stream);
    const auto logits = linear("logits", head(), saved.final_norm.output);
    std::vector<ValueId> writes{inputs_.loss};
    if (with_gradient) {
        saved.dlogits = view("dlogits", logits);
        writes.push_back(saved.dlogits);
    }
    if (is_cut())
        cut_loss(logits, writes);
    else
        emit(StepPart::forward,
             {.kind = OpKind::cross_entropy, .reads = {logits, inputs_.targets}, .writes = writes});
}

void OpEmitter::cut_loss(ValueId logits, const std::vector<ValueId>& writes) {
    const auto max = activation("logits_max", {tokens_});
    emit(StepPart::forward, {.kind = OpKind::logits_max, .reads = {logits}, .writes = {max}});
    reduce(OpKind::all_reduce_max, max);
    const auto sums = activation("logits_sums", {2 * tokens_});
    emit(StepPart::forward, {.kind = OpKind::logits_sum,
                          .attributes = vocabulary_rows(),
                          .reads = {logits, inputs_.targets, max},
                          .writes = {sums}});
    reduce(OpKind::all_reduce, sums);
    emit(StepPart::forward, {.kind = OpKind::cross_entropy_parallel,
                          .attributes = vocabulary_rows(),
                          .reads = {logits, inputs_.targets, max, sums},
                          .writes = writes});
}

ValueId OpEmitter::head_backward(const Saved& saved) {
    const auto doutput = gathered_linear_backward("logits", head(), saved.final_norm.output, saved.dlogits);
    return norm_backward("final_norm", *parameters_.final_norm, saved.final_norm, doutput, std::nullopt);
}

}  // namespace atl
