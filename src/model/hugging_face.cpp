#include "model/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace atl {
namespace {

// Reads fields and collects what is wrong with them.
class FieldReader {
  public:
    explicit FieldReader(const HuggingFaceConfig& config) : config_(config) {}

    bool has(const std::string& key) const { return config_.contains(key); }

    std::int64_t integer(const std::string& key, const std::optional<std::int64_t>& fallback = std::nullopt) {
        return get<std::int64_t>(key, fallback, "an integer");
    }
    bool boolean(const std::string& key, bool fallback) { return get<bool>(key, fallback, "true or false"); }
    std::string text(const std::string& key, std::optional<std::string> fallback = std::nullopt) {
        return get<std::string>(key, fallback, "a text");
    }
    double number(const std::string& key, double fallback) {
        const auto found = config_.find(key);
        if (found != config_.end())
            if (const auto* whole = std::get_if<std::int64_t>(&found->second))
                return static_cast<double>(*whole);
        return get<double>(key, fallback, "a number");
    }
    void require(bool condition, const std::string& problem) {
        if (!condition) problems_.push_back(problem);
    }
    void finish() const {
        if (!problems_.empty()) throw UserError(problems_);
    }

  private:
    template <class T>
    T get(const std::string& key, const std::optional<T>& fallback, std::string_view expected) {
        const auto found = config_.find(key);
        if (found == config_.end()) {
            require(fallback.has_value(), fmt::format("\"{}\" is missing", key));
            return fallback.value_or(T{});
        }
        const auto* value = std::get_if<T>(&found->second);
        require(value != nullptr, fmt::format("\"{}\" is not {}", key, expected));
        return value != nullptr ? *value : T{};
    }

    const HuggingFaceConfig& config_;
    std::vector<std::string> problems_;
};

ModelShape read_llama(FieldReader& fields) {
    ModelShape s{.kind = ModelKind::llama};
    s.layers = fields.integer("num_hidden_layers");
    s.hidden = fields.integer("hidden_size");
    s.heads = fields.integer("num_attention_heads");
    s.kv_heads = fields.integer("num_key_value_heads", s.heads);
    s.head_width = fields.integer("head_dim", s.heads > 0 ? s.hidden / s.heads : 0);
    s.ffn = fields.integer("intermediate_size");
    s.vocab = fields.integer("vocab_size");
    s.context = fields.integer("max_position_embeddings", 2048);
    s.tied = fields.boolean("tie_word_embeddings", false);
    s.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
    // Newer files nest the rotary fields.
    s.rope_theta = fields.number("rope_theta", fields.number("rope_parameters.rope_theta", 10000.0));
    fields.require(fields.text("hidden_act", "silu") == "silu", "\"hidden_act\" is not \"silu\"");
    fields.require(!fields.boolean("attention_bias", false), "\"attention_bias\": biases are not built here");
    fields.require(!fields.boolean("mlp_bias", false), "\"mlp_bias\": biases are not built here");
    const bool scaled = fields.has("rope_scaling.rope_type") || fields.has("rope_scaling.type") ||
                        fields.text("rope_parameters.rope_type", "default") != "default";
    fields.require(!scaled, "scaled rotary positions (\"rope_scaling\") are not built here");
    return s;
}

ModelShape read_gpt2(FieldReader& fields) {
    ModelShape s{.kind = ModelKind::gpt2};
    s.layers = fields.integer("n_layer");
    s.hidden = fields.integer("n_embd");
    s.heads = s.kv_heads = fields.integer("n_head");
    s.head_width = s.heads > 0 ? s.hidden / s.heads : 0;
    s.ffn = fields.integer("n_inner", 4 * s.hidden);
    s.vocab = fields.integer("vocab_size");
    s.context = fields.integer("n_positions", 1024);
    s.tied = fields.boolean("tie_word_embeddings", true);
    s.norm_epsilon = fields.number("layer_norm_epsilon", 1e-5);
    const auto activation = fields.text("activation_function", "gelu_new");
    fields.require(activation == "gelu_new" || activation == "gelu_pytorch_tanh",
                   "\"activation_function\" is not \"gelu_new\"");
    fields.require(fields.boolean("scale_attn_weights", true), "\"scale_attn_weights\" is false");
    fields.require(!fields.boolean("scale_attn_by_inverse_layer_idx", false),
                   "\"scale_attn_by_inverse_layer_idx\" is true");
    return s;
}

// GPT-2's linear layers are stored [in, out].
bool is_transposed(const ModelShape& shape, const TensorSpec& tensor) {
    return shape.kind == ModelKind::gpt2 && tensor.shape.size() == 2 &&
           tensor.name.find(".h.") != std::string::npos;
}

}  // namespace

HuggingFaceConfig hugging_face_config(const ModelShape& s) {
    if (s.kind == ModelKind::gpt2)
        return {{"architectures", std::vector<std::string>{"GPT2LMHeadModel"}},
                {"model_type", std::string("gpt2")},
                {"n_layer", s.layers},
                {"n_embd", s.hidden},
                {"n_head", s.heads},
                {"n_inner", s.ffn},
                {"n_positions", s.context},
                {"n_ctx", s.context},
                {"vocab_size", s.vocab},
                {"activation_function", std::string("gelu_new")},
                {"layer_norm_epsilon", s.norm_epsilon},
                {"tie_word_embeddings", s.tied},
                {"attn_pdrop", 0.0},
                {"embd_pdrop", 0.0},
                {"resid_pdrop", 0.0},
                {"torch_dtype", std::string("float32")}};
    return {{"architectures", std::vector<std::string>{"LlamaForCausalLM"}},
            {"model_type", std::string("llama")},
            {"num_hidden_layers", s.layers},
            {"hidden_size", s.hidden},
            {"num_attention_heads", s.heads},
            {"num_key_value_heads", s.kv_heads},
            {"head_dim", s.head_width},
            {"intermediate_size", s.ffn},
            {"vocab_size", s.vocab},
            {"max_position_embeddings", s.context},
            {"hidden_act", std::string("silu")},
            {"rms_norm_eps", s.norm_epsilon},
            {"rope_theta", s.rope_theta},
            {"attention_bias", false},
            {"mlp_bias", false},
            {"tie_word_embeddings", s.tied},
            {"torch_dtype", std::string("float32")}};
}

ModelShape shape_from_hugging_face(const HuggingFaceConfig& config) {
    FieldReader fields(config);
    const auto type = fields.text("model_type");
    fields.require(type == "llama" || type == "gpt2",
                   fmt::format("\"model_type\" is \"{}\"; llama and gpt2 are built here", type));
    fields.finish();
    const auto shape = type == "llama" ? read_llama(fields) : read_gpt2(fields);
    fields.finish();
    for (const auto& problem : problems(shape)) fields.require(false, problem);
    fields.finish();
    return shape;
}

std::vector<HuggingFaceTensor> hugging_face_tensors(const ModelShape& shape) {
    std::vector<HuggingFaceTensor> tensors;
    for (const auto& tensor : model_tensors(shape))
        tensors.push_back({tensor.name, tensor.name, is_transposed(shape, tensor)});
    return tensors;
}

bool is_ignorable(const ModelShape& shape, const std::string& name_in_file) {
    if (shape.tied && name_in_file == "lm_head.weight") return true;
    return name_in_file.ends_with(".attn.bias") || name_in_file.ends_with(".attn.masked_bias") ||
           name_in_file.ends_with("rotary_emb.inv_freq");
}

}  // namespace atl
