// Emits the ops of one micro-batch after another: forward, and backward as input and weight gradients apart.
#pragma once

#include <set>

#include "model/parameter_values.h"
#include "model/training_program.h"

namespace atl {

// What the host sets before a micro-batch and reads after it.
struct MicroBatchValues {
    ValueId tokens;
    ValueId targets;
    ValueId positions;
    ValueId starts;
    ValueId loss;
};

struct EmitOptions {
    std::int64_t sequences = 1;
    std::int64_t context = 0;
    DType dtype = DType::f32;
    ScratchRule scratch_bytes;
};

class OpEmitter {
  public:
    // `builder` and `parameters` outlive the emitter. Adds the rotary table if the model has one.
    OpEmitter(StepBuilder& builder, const ModelShape& shape, const EmitOptions& options,
              const ModelParts<Parameter>& parameters);

    // The loss alone (evaluation).
    void emit_forward(std::int32_t micro_batch);
    // Forward, then backward into the parameters' gradients; the first writer of a gradient overwrites.
    void emit_forward_and_backward(std::int32_t micro_batch);

  private:
    // What a norm leaves for backward. `input` is the residual stream at that place.
    struct SavedNorm {
        ValueId input;
        std::optional<ValueId> mean;
        ValueId rstd;
        ValueId output;
    };
    struct SavedLayer {
        SavedNorm attention_norm;
        ValueId qkv;
        ValueId attended;
        ValueId logsumexp;
        SavedNorm ffn_norm;
        ValueId up;
        ValueId activated;
    };
    struct Saved {
        std::vector<SavedLayer> layers;
        SavedNorm final_norm;
        ValueId logits;
        ValueId dlogits;
    };
    // The residual stream: a sum, and what is still to be added to it by the next norm.
    struct Stream {
        ValueId sum;
        std::optional<ValueId> delta;
    };

    Saved forward(std::int32_t micro_batch, bool with_gradient);
    void backward(const Saved& saved);
    SavedLayer layer_forward(const LayerParts<Parameter>& layer, Stream& stream);
    // Takes the gradient of the stream behind the layer and returns the one before it.
    ValueId layer_backward(const LayerParts<Parameter>& layer, const SavedLayer& saved, ValueId dstream);
    ValueId attention_backward(const SavedLayer& saved, ValueId dattended);
    void embedding_backward(ValueId dstream);

    SavedNorm norm(const std::string& name, const NormParts<Parameter>& norm, Stream& stream);
    ValueId norm_backward(const std::string& name, const NormParts<Parameter>& norm, const SavedNorm& saved,
                          ValueId doutput, std::optional<ValueId> dsum);
    ValueId linear(const std::string& name, const LinearParts<Parameter>& linear, ValueId input);
    // Weight gradient, then input gradient.
    ValueId linear_backward(const std::string& name, const LinearParts<Parameter>& linear, ValueId input,
                            ValueId doutput);
    MicroBatchValues add_inputs(std::int32_t micro_batch);
    LinearParts<Parameter> head() const;

    ValueId activation(const std::string& name, Shape shape);
    ValueId view(const std::string& name, ValueId base);
    void emit(Phase phase, Op op);
    double flops(const Op& op) const;
    // Of ops that touch a part of what they read or write; 0 = all of it.
    std::int64_t touched_bytes(const Op& op) const;
    AccumulateAttributes accumulate_into(ValueId gradient);
    const Shape& shape_of_value(ValueId id) const { return builder_.program().value(id).shape; }

    StepBuilder& builder_;
    const ModelShape shape_;
    const EmitOptions options_;
    const ModelParts<Parameter>& parameters_;
    const std::int64_t tokens_;  // of a micro-batch
    const HeadAttributes heads_;
    ValueId rope_table_;
    std::set<ValueId> written_gradients_;

    // Where ops are being emitted now.
    std::int32_t micro_batch_ = 0;
    std::int32_t layer_ = kEmbeddingLayer;
    MicroBatchValues inputs_;
};

}  // namespace atl
