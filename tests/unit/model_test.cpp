// Models as data: the presets' parameter counts and tensor names against the published models, initial values as a
// function of the logical index alone, flops by hand, the Hugging Face spelling there and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "config/model_preset.h"
#include "core/error.h"
#include "model/flops.h"
#include "model/hugging_face.h"
#include "model/initial_values.h"
#include "support/small_models.h"

namespace atl {
namespace {

const TensorSpec& find(const std::vector<TensorSpec>& tensors, const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
    EXPECT_NE(found, tensors.end()) << name;
    return *found;
}

TEST(Presets, have_the_published_parameter_counts) {
    const std::map<std::string, std::int64_t> published = {
        {"gpt2-124m", 124'439'808},    {"gpt2-355m", 354'823'168},        {"gpt2-774m", 774'030'080},
        {"gpt2-1558m", 1'557'611'200}, {"llama-1b", 1'235'814'400},       {"llama-3b", 3'212'749'824},
        {"llama-7b", 6'738'415'616},   {"llama-8b", 8'030'261'248},       {"llama-13b", 13'015'864'320},
        {"llama-70b", 70'553'706'496}, {"tinyllama-1.1b", 1'100'048'384},
    };
    for (const auto& name : model_preset_names()) {
        const auto shape = shape_of(*model_preset(name));
        EXPECT_TRUE(problems(shape).empty()) << name;
        ASSERT_TRUE(published.contains(name)) << name;
        EXPECT_EQ(parameter_count(shape), published.at(name)) << name;
    }
}

TEST(ModelShape, problems_name_the_rule_and_both_numbers) {
    auto shape = test::tiny_llama();
    shape.kv_heads = 3;
    EXPECT_EQ(problems(shape), std::vector<std::string>{"heads 4 is not a multiple of kv_heads 3"});
    shape = test::tiny_gpt2();
    shape.tied = false;
    shape.hidden = 65;
    EXPECT_EQ(problems(shape).size(), 2u);
    shape.layers = 0;
    EXPECT_EQ(problems(shape), std::vector<std::string>{"layers is 0; it must be at least 1"});
}

TEST(ModelShape, of_a_config_has_its_numbers) {
    const ModelConfig config{.layers = 3, .hidden = 96, .heads = 6, .kv_heads = 2, .ffn = 256, .context = 40};
    const auto shape = shape_of(config);
    EXPECT_EQ(shape.head_width, 16);
    EXPECT_EQ(shape.qkv_rows(), (6 + 2 * 2) * 16);
    EXPECT_EQ(shape.context, 40);
    EXPECT_TRUE(problems(shape).empty());
}

TEST(Tensors, of_a_llama_are_those_of_its_hugging_face_model) {
    auto shape = test::tiny_llama();
    shape.layers = 1;
    std::vector<std::string> names;
    for (const auto& tensor : model_tensors(shape)) names.push_back(tensor.name);
    const std::vector<std::string> expected = {"model.embed_tokens.weight",
                                               "model.layers.0.input_layernorm.weight",
                                               "model.layers.0.self_attn.q_proj.weight",
                                               "model.layers.0.self_attn.k_proj.weight",
                                               "model.layers.0.self_attn.v_proj.weight",
                                               "model.layers.0.self_attn.o_proj.weight",
                                               "model.layers.0.post_attention_layernorm.weight",
                                               "model.layers.0.mlp.gate_proj.weight",
                                               "model.layers.0.mlp.up_proj.weight",
                                               "model.layers.0.mlp.down_proj.weight",
                                               "model.norm.weight",
                                               "lm_head.weight"};
    EXPECT_EQ(names, expected);
    const auto tensors = model_tensors(shape);
    EXPECT_EQ(find(tensors, "model.layers.0.self_attn.k_proj.weight").shape, (Shape{32, 64}));
    EXPECT_EQ(find(tensors, "model.layers.0.mlp.down_proj.weight").initial, InitialValues::scaled_residual);
    shape.tied = true;
    EXPECT_EQ(model_tensors(shape).size(), expected.size() - 1);
}

TEST(Tensors, of_a_gpt2_are_those_of_its_hugging_face_model) {
    auto shape = shape_of(*model_preset("gpt2-124m"));
    shape.layers = 1;
    const auto tensors = model_tensors(shape);
    std::vector<std::string> names;
    for (const auto& tensor : tensors) names.push_back(tensor.name);
    const std::string layer = "transformer.h.0.";
    const std::vector<std::string> expected = {
        "transformer.wte.weight",     "transformer.wpe.weight",     layer + "ln_1.weight",
        layer + "ln_1.bias",          layer + "attn.c_attn.weight", layer + "attn.c_attn.bias",
        layer + "attn.c_proj.weight", layer + "attn.c_proj.bias",   layer + "ln_2.weight",
        layer + "ln_2.bias",          layer + "mlp.c_fc.weight",    layer + "mlp.c_fc.bias",
        layer + "mlp.c_proj.weight",  layer + "mlp.c_proj.bias",    "transformer.ln_f.weight",
        "transformer.ln_f.bias"};
    EXPECT_EQ(names, expected);
    EXPECT_EQ(find(tensors, layer + "attn.c_attn.weight").shape, (Shape{2304, 768}));
}

TEST(Tensors, only_matrices_decay) {
    for (const auto& shape : {test::tiny_llama(), test::tiny_gpt2()})
        for (const auto& tensor : model_tensors(shape))
            EXPECT_EQ(tensor.decays, tensor.shape.size() == 2) << tensor.name;
}

TEST(InitialValues, of_a_box_are_the_same_as_in_the_whole_tensor) {
    const auto shape = test::tiny_llama();
    const auto tensors = model_tensors(shape);
    const auto& tensor = find(tensors, "model.layers.1.self_attn.q_proj.weight");
    std::vector<float> whole(64 * 64), part(10 * 7);
    fill_initial(shape, tensor, 5, Box::whole(tensor.shape), std::span(whole));
    fill_initial(shape, tensor, 5, Box{{{3, 13}, {57, 64}}}, std::span(part));
    for (std::size_t row = 0; row < 10; ++row)
        for (std::size_t column = 0; column < 7; ++column)
            EXPECT_EQ(part[row * 7 + column], whole[(row + 3) * 64 + column + 57]);
    std::vector<double> in_double(64 * 64);
    fill_initial(shape, tensor, 5, Box::whole(tensor.shape), std::span(in_double));
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], static_cast<float>(in_double[i]));
}

TEST(InitialValues, have_the_spread_of_their_kind_and_depend_on_seed_and_name) {
    const auto shape = test::tiny_llama();  // two layers: residual projections have half the spread
    const auto tensors = model_tensors(shape);
    const auto values = [&](const std::string& name, std::uint64_t seed) {
        const auto& tensor = find(tensors, name);
        std::vector<double> result(static_cast<std::size_t>(element_count(tensor.shape)));
        fill_initial(shape, tensor, seed, Box::whole(tensor.shape), std::span(result));
        return result;
    };
    const auto spread = [](const std::vector<double>& numbers) {
        double sum = 0;
        for (const auto number : numbers) sum += number * number;
        return std::sqrt(sum / static_cast<double>(numbers.size()));
    };
    // The error of an estimate of σ from n numbers is σ / sqrt(2 n): 0.6 % for 12,288 of them.
    EXPECT_NEAR(spread(values("model.layers.0.mlp.gate_proj.weight", 1)), 0.02, 0.02 * 0.03);
    EXPECT_NEAR(spread(values("model.layers.0.mlp.down_proj.weight", 1)), 0.01, 0.01 * 0.03);
    EXPECT_EQ(values("model.norm.weight", 1), std::vector<double>(64, 1.0));
    EXPECT_NE(values("model.layers.0.mlp.up_proj.weight", 1),
              values("model.layers.0.mlp.gate_proj.weight", 1));
    EXPECT_NE(values("model.layers.0.mlp.up_proj.weight", 1), values("model.layers.0.mlp.up_proj.weight", 2));
}

TEST(RopeTable, holds_cosines_then_sines_of_position_times_frequency) {
    const auto shape = test::tiny_llama();  // head width 16
    const auto table = rope_table(shape, 8);
    ASSERT_EQ(table.size(), 8u * 16u);
    EXPECT_EQ(table[0], 1.0);
    EXPECT_EQ(table[8], 0.0);
    const double angle = 5 * std::pow(10000.0, -6.0 / 16.0);
    EXPECT_DOUBLE_EQ(table[5 * 16 + 3], std::cos(angle));
    EXPECT_DOUBLE_EQ(table[5 * 16 + 8 + 3], std::sin(angle));
}

TEST(Flops, count_two_per_weight_and_four_per_attended_key_and_feature) {
    const auto shape = test::tiny_llama();  // 2 layers, hidden 64, qkv rows 128, ffn 192, vocab 257
    const double weights = 64 * 128 + 64 * 64 + 3 * 64 * 192;
    const double attention = 4 * 64 * (128 + 1) / 2.0;
    EXPECT_DOUBLE_EQ(forward_flops_per_token(shape, 128), 2 * (2 * weights + attention) + 2 * 64 * 257);
    EXPECT_DOUBLE_EQ(backward_flops_per_token(shape, 128), 2 * forward_flops_per_token(shape, 128));
}

TEST(HuggingFace, a_shape_comes_back_from_its_config) {
    for (const auto& name : model_preset_names()) {
        const auto shape = shape_of(*model_preset(name));
        EXPECT_EQ(shape_from_hugging_face(hugging_face_config(shape)), shape) << name;
    }
}

TEST(HuggingFace, optional_fields_have_the_defaults_of_the_format) {
    const auto gpt2 = shape_from_hugging_face({{"model_type", std::string("gpt2")},
                                               {"n_layer", std::int64_t{12}},
                                               {"n_embd", std::int64_t{768}},
                                               {"n_head", std::int64_t{12}},
                                               {"vocab_size", std::int64_t{50257}}});
    EXPECT_EQ(gpt2, shape_of(*model_preset("gpt2-124m")));
    auto config = hugging_face_config(test::tiny_llama());
    config.erase("rope_theta");
    config["rope_parameters.rope_theta"] = 5e5;
    config["rope_parameters.rope_type"] = std::string("default");
    EXPECT_EQ(shape_from_hugging_face(config).rope_theta, 5e5);
}

TEST(HuggingFace, what_can_not_be_built_is_refused_with_every_reason) {
    auto config = hugging_face_config(test::tiny_llama());
    config["hidden_act"] = std::string("gelu");
    config["attention_bias"] = true;
    config["rope_scaling.rope_type"] = std::string("llama3");
    config.erase("vocab_size");
    config["hidden_size"] = std::string("64");
    try {
        shape_from_hugging_face(config);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_EQ(error.problems().size(), 5u) << error.what();
    }
    EXPECT_THROW(shape_from_hugging_face({{"model_type", std::string("bert")}}), UserError);
}

TEST(HuggingFace, only_the_linear_layers_of_gpt2_are_stored_transposed) {
    for (const auto& tensor : hugging_face_tensors(test::tiny_gpt2())) {
        const bool linear = tensor.name.find(".c_") != std::string::npos && tensor.name.ends_with(".weight");
        EXPECT_EQ(tensor.transposed, linear) << tensor.name;
    }
    for (const auto& tensor : hugging_face_tensors(test::tiny_llama())) EXPECT_FALSE(tensor.transposed);
    EXPECT_TRUE(is_ignorable(test::tiny_gpt2(), "lm_head.weight"));
    EXPECT_TRUE(is_ignorable(test::tiny_gpt2(), "h.0.attn.bias"));
    EXPECT_FALSE(is_ignorable(test::tiny_gpt2(), "transformer.h.0.attn.c_attn.bias"));
    EXPECT_FALSE(is_ignorable(test::tiny_llama(), "lm_head.weight"));
}

}  // namespace
}  // namespace atl
