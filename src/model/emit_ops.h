// Emits the ops of one micro-batch after another on one rank: forward, and backward as input and weight gradients
// apart.
//
// Sequence parallelism: between the blocks of a layer a rank has the residual stream of its own tokens. Their norm is
// gathered before a product that is cut by rows of its weight; the partial sums of a product cut by columns are added
// up and scattered again. What was gathered is kept for the weight's gradient (Korthikanti et al., "Reducing activation
// recomputation in large transformer models", 2022).
#pragma once

#include <set>

#include "model/collectives.h"
#include "model/model_layout.h"
#include "model/parameter_values.h"
#include "model/training_program.h"

namespace atl {

// What the host sets before a micro-batch and reads after it.
struct MicroBatchValues {
    ValueId tokens;
    ValueId targets;
    ValueId positions;
    ValueId own_positions;  // of this rank's tokens
    ValueId starts;
    ValueId loss;  // on ranks with the head
};

struct EmitOptions {
    std::int64_t sequences = 1;
    std::int64_t context = 0;
    DType dtype = DType::f32;
    ScratchRule scratch_bytes;
    ParallelShape parallel;
};

class OpEmitter {
  public:
    // `builder`, `collectives` and `parameters` outlive the emitter. Adds the rotary table if the model has one.
    OpEmitter(StepBuilder& builder, Collectives& collectives, const ModelShape& shape,
              const EmitOptions& options, const ModelParts<Parameter>& parameters);

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
        ValueId output;  // of all tokens
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
        std::map<std::int64_t, SavedLayer> layers;  // by number
        SavedNorm final_norm;
        ValueId dlogits;
    };
    // The residual stream: a sum, and what is still to be added to it by the next norm.
    struct Stream {
        ValueId sum;
        std::optional<ValueId> delta;
    };

    // emit_ops.cpp: the way through this rank's stages.
    Saved forward(std::int32_t micro_batch, bool with_gradient);
    void backward(const Saved& saved);
    MicroBatchValues add_inputs(std::int32_t micro_batch);
    ValueId activation(const std::string& name, Shape shape);
    ValueId view(const std::string& name, ValueId base);
    void emit(StepPart phase, Op op);
    double flops(const Op& op) const;
    // Of ops that touch a part of what they read or write; 0 = all of it.
    std::int64_t touched_bytes(const Op& op) const;
    AccumulateAttributes accumulate_into(ValueId gradient);
    const Shape& shape_of_value(ValueId id) const { return builder_.program().value(id).shape; }

    // emit_layer.cpp
    SavedLayer layer_forward(const LayerParts<Parameter>& layer, Stream& stream);
    // Takes the gradient of the stream behind the layer and returns the one before it.
    ValueId layer_backward(const LayerParts<Parameter>& layer, const SavedLayer& saved, ValueId dstream);
    ValueId attention_backward(const SavedLayer& saved, ValueId dattended);
    // Its output is gathered.
    SavedNorm norm(const std::string& name, const NormParts<Parameter>& norm, Stream& stream);
    ValueId norm_backward(const std::string& name, const NormParts<Parameter>& norm, const SavedNorm& saved,
                          ValueId doutput, std::optional<ValueId> dsum);

    // emit_linear.cpp: products, whole or cut.
    ValueId linear(const std::string& name, const LinearParts<Parameter>& linear, ValueId input);
    void weight_gradient(const LinearParts<Parameter>& linear, ValueId input, ValueId doutput);
    ValueId input_gradient(const std::string& name, const LinearParts<Parameter>& linear, ValueId input,
                           ValueId doutput);
    // Of a product cut by columns: both gradients.
    ValueId linear_backward(const std::string& name, const LinearParts<Parameter>& linear, ValueId input,
                            ValueId doutput);
    // Of one cut by rows, whose input was gathered: the input's gradient is that of this rank's tokens.
    ValueId gathered_linear_backward(const std::string& name, const LinearParts<Parameter>& linear,
                                     ValueId input, ValueId doutput);

    // emit_vocabulary.cpp: the model's two ends.
    Stream embedding();
    void embedding_backward(ValueId dstream);
    void head_forward(Stream& stream, bool with_gradient, Saved& saved);
    void cut_loss(ValueId logits, const std::vector<ValueId>& writes);
    ValueId head_backward(const Saved& saved);
    LinearParts<Parameter> head() const;
    RowAttributes vocabulary_rows() const;

    // emit_exchange.cpp: what passes between ranks. Without tensor parallelism a value is its own gathering.
    ValueId gather(StepPart phase, const std::string& name, ValueId own);
    ValueId scatter(StepPart phase, const std::string& name, ValueId partial);
    void reduce(OpKind kind, ValueId value);
    // The stream across the boundary behind `stage` and its gradient back: sent, received, or kept if the other side
    // is this rank's too.
    void pass_stream(std::int32_t stage, const Stream& stream);
    Stream take_stream(std::int32_t stage);
    void pass_gradient(std::int32_t stage, ValueId dstream);
    ValueId take_gradient(std::int32_t stage);
    void send(StepPart phase, std::int32_t stage, ValueId value);
    ValueId receive(StepPart phase, std::int32_t stage, const std::string& name);
    bool is_here(std::int32_t stage) const;
    bool is_cut() const { return options_.parallel.tp > 1; }

    StepBuilder& builder_;
    Collectives& collectives_;
    const ModelShape shape_;
    const EmitOptions options_;
    const ModelParts<Parameter>& parameters_;
    const RankPlace place_;
    const RankShape here_;
    const std::int64_t tokens_;  // of a micro-batch
    const Range own_tokens_;
    const HeadAttributes heads_;
    ValueId rope_table_;
    std::set<ValueId> written_gradients_;

    // Where ops are being emitted now.
    std::int32_t micro_batch_ = 0;
    std::int32_t layer_ = kEmbeddingLayer;
    MicroBatchValues inputs_;
    std::map<std::int32_t, Stream> kept_streams_;     // by stage; consumed by the next one
    std::map<std::int32_t, ValueId> kept_gradients_;  // by stage; consumed by the one before
};

}  // namespace atl
