// `atoll import` and `atoll export` against models that transformers wrote (tools/make_fixtures.py): tensors arrive
// unchanged and leave unchanged; what isn't built is refused with every reason at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "cli/hugging_face_files.h"
#include "core/error.h"
#include "model/hugging_face.h"
#include "model/model_json.h"
#include "support/temporary_directory.h"

namespace atl::cli {
namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;

class HuggingFace : public testing::Test {
  protected:
    static std::filesystem::path fixture(const std::string& name) {
        return std::filesystem::path(std::getenv("ATOLL_SOURCE_DIR")) / "tests" / "golden" / name;
    }
    std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }

    // A copy of the fixture with these fields of config.json replaced.
    std::filesystem::path with_config(const std::string& name, const Json& changes) const {
        const auto copy = path("changed");
        std::filesystem::remove_all(copy);
        std::filesystem::copy(fixture(name), copy);
        Json config = Json::parse(files_->read_text(copy / "config.json"));
        config.update(changes);
        files_->write_text_atomically(copy / "config.json", config.dump());
        return copy;
    }
    std::vector<std::string> problems_of(const std::filesystem::path& directory) const {
        try {
            import_hugging_face(*files_, directory, path("refused"));
        } catch (const UserError& error) {
            EXPECT_FALSE(files_->exists(path("refused"))) << "nothing is written before all is checked";
            return error.problems();
        }
        return {};
    }
    void expect_problem(const std::filesystem::path& directory, const std::string& text) const {
        const auto problems = problems_of(directory);
        EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                                [&](const auto& p) { return p.find(text) != std::string::npos; }))
            << text << " is not among: " << fmt::format("{}", fmt::join(problems, "\n"));
    }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

std::vector<float> read(const SafetensorsReader& reader, const std::string& name) {
    std::vector<float> values(static_cast<std::size_t>(element_count(reader.tensors().at(name).shape)));
    reader.read(name, values);
    return values;
}

class HuggingFaceFixture : public HuggingFace, public testing::WithParamInterface<const char*> {};

TEST_P(HuggingFaceFixture, comes_back_from_a_checkpoint_with_every_tensor_unchanged) {
    const ConvertedModel imported = import_hugging_face(*files_, fixture(GetParam()), path("checkpoint"));
    const ConvertedModel exported = export_hugging_face(*files_, path("checkpoint"), path("out"));
    EXPECT_EQ(exported.shape, imported.shape);
    const SafetensorsReader original(*files_, fixture(GetParam())), written(*files_, path("out"));
    ASSERT_EQ(written.tensors().size(), original.tensors().size());
    std::int64_t parameters = 0;
    for (const auto& [name, entry] : original.tensors()) {
        ASSERT_TRUE(written.tensors().contains(name)) << name;
        EXPECT_EQ(written.tensors().at(name).shape, entry.shape) << name;
        EXPECT_EQ(read(written, name), read(original, name)) << name;
        parameters += element_count(entry.shape);
    }
    EXPECT_EQ(imported.parameters, parameters);
}

TEST_P(HuggingFaceFixture, keeps_the_models_numbers_in_config_json) {
    import_hugging_face(*files_, fixture(GetParam()), path("checkpoint"));
    export_hugging_face(*files_, path("checkpoint"), path("out"));
    const Json original = Json::parse(files_->read_text(fixture(GetParam()) / "config.json"));
    const Json written = Json::parse(files_->read_text(path("out") / "config.json"));
    int compared = 0;
    for (const char* key :
         {"architectures", "model_type", "num_hidden_layers", "hidden_size", "num_attention_heads",
          "num_key_value_heads", "intermediate_size", "vocab_size", "max_position_embeddings", "rms_norm_eps",
          "head_dim", "hidden_act", "tie_word_embeddings", "n_layer", "n_embd", "n_head", "n_positions",
          "activation_function", "layer_norm_epsilon"})
        if (original.contains(key)) {
            EXPECT_EQ(written.value(key, Json()), original[key]) << key;
            ++compared;
        }
    EXPECT_GE(compared, 10);
    EXPECT_EQ(written.value("rope_theta", Json()),
              original.value("/rope_parameters/rope_theta"_json_pointer, Json()));
}

INSTANTIATE_TEST_SUITE_P(Models, HuggingFaceFixture,
                         testing::Values("hf_llama_gqa", "hf_llama_tied", "hf_gpt2"));

TEST_F(HuggingFace, gpt2_matrices_are_turned_once_on_the_way_in) {
    import_hugging_face(*files_, fixture("hf_gpt2"), path("checkpoint"));
    const CheckpointReader reader(*files_, path("checkpoint"));
    const SafetensorsReader original(*files_, fixture("hf_gpt2"));
    const auto stored = read(original, "transformer.h.1.mlp.c_fc.weight");  // [in 24, out 96]
    const std::string name = "parameters/transformer.h.1.mlp.c_fc.weight";
    EXPECT_EQ(reader.tensor(name).shape, (Shape{96, 24}));
    std::vector<float> ours(stored.size());
    reader.read(name, ours);
    for (std::size_t in = 0; in < 24; ++in)
        for (std::size_t out = 0; out < 96; ++out) EXPECT_EQ(ours[out * 24 + in], stored[in * 96 + out]);
}

TEST_F(HuggingFace, export_prefers_the_outer_parameters_over_one_sites_local_ones) {
    import_hugging_face(*files_, fixture("hf_llama_tied"), path("checkpoint"));
    const CheckpointReader imported(*files_, path("checkpoint"));
    {
        CheckpointWriter writer(*files_, path("run/checkpoints/step_10"), {"a"},
                                {.run_id = "run", .step = Step(10), .model = imported.metadata().model});
        for (const auto& tensor : imported.section("parameters")) {
            std::vector<float> values(static_cast<std::size_t>(element_count(tensor.shape)), 1.0f);
            writer.add("parameters/" + tensor.name, tensor.shape, view_of(values));
            std::fill(values.begin(), values.end(), 2.0f);
            writer.add("anchor/" + tensor.name, tensor.shape, view_of(values));
        }
        writer.commit();
    }
    EXPECT_EQ(export_hugging_face(*files_, path("run"), path("out")).section, "anchor");
    EXPECT_EQ(read(SafetensorsReader(*files_, path("out")), "model.norm.weight"),
              std::vector<float>(16, 2.0f));
}

TEST_F(HuggingFace, options_that_are_not_built_are_refused_together) {
    const auto changed =
        with_config("hf_llama_gqa", {{"attention_bias", true},
                                     {"mlp_bias", true},
                                     {"hidden_act", "gelu"},
                                     {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}}});
    EXPECT_EQ(problems_of(changed).size(), 4u);
    for (const char* text : {"attention_bias", "mlp_bias", "hidden_act", "rope_scaling", "config.json"})
        expect_problem(changed, text);
    expect_problem(with_config("hf_llama_gqa", {{"rope_parameters", {{"rope_type", "yarn"}}}}), "rope");
    expect_problem(with_config("hf_gpt2", {{"activation_function", "relu"}}), "activation_function");
    expect_problem(with_config("hf_gpt2", {{"scale_attn_by_inverse_layer_idx", true}}), "inverse_layer_idx");
    expect_problem(with_config("hf_gpt2", {{"tie_word_embeddings", false}}), "tied");
    expect_problem(with_config("hf_gpt2", {{"model_type", "mistral"}}), "mistral");
}

TEST_F(HuggingFace, tensors_that_are_missing_misshapen_or_unknown_are_listed_together) {
    const auto changed = with_config("hf_llama_gqa", {{"num_hidden_layers", 1}, {"vocab_size", 81}});
    expect_problem(changed, "tensor model.embed_tokens.weight is [80, 32], config.json asks for [81, 32]");
    expect_problem(changed, "tensor model.layers.1.mlp.down_proj.weight has no place");
    expect_problem(with_config("hf_llama_gqa", {{"num_hidden_layers", 3}}),
                   "no tensor model.layers.2.input_layernorm.weight");
}

TEST_F(HuggingFace, files_that_are_missing_or_no_json_are_the_users_mistake) {
    expect_problem(path("nowhere"), "config.json doesn't exist");
    std::filesystem::create_directory(path("empty"));
    files_->write_text_atomically(path("empty") / "config.json", "{");
    expect_problem(path("empty"), "not a JSON object");
    std::filesystem::copy_file(fixture("hf_gpt2") / "config.json", path("empty") / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    expect_problem(path("empty"), "model.safetensors");
}

TEST_F(HuggingFace, gpt2_files_without_the_common_prefix_are_read) {
    const SafetensorsReader original(*files_, fixture("hf_gpt2"));
    std::vector<SafetensorsEntry> entries;
    for (const auto& [name, entry] : original.tensors())
        entries.push_back({name.substr(std::string("transformer.").size()), entry.shape,
                           [&, name = name](std::span<float> values) { original.read(name, values); }});
    const auto mask = [](std::span<float> values) { std::fill(values.begin(), values.end(), 1.0f); };
    entries.push_back({"h.0.attn.bias", {1, 1, 24, 24}, mask});  // a causal mask, as old files hold it
    const auto copy = path("bare");
    std::filesystem::create_directory(copy);
    write_safetensors(*files_, copy / "model.safetensors", entries, {});
    std::filesystem::copy_file(fixture("hf_gpt2") / "config.json", copy / "config.json");
    import_hugging_face(*files_, copy, path("checkpoint"));
    export_hugging_face(*files_, path("checkpoint"), path("out"));
    EXPECT_EQ(read(SafetensorsReader(*files_, path("out")), "transformer.wte.weight"),
              read(original, "transformer.wte.weight"));
}

TEST_F(HuggingFace, a_tied_head_that_stands_apart_must_equal_its_embedding) {
    const SafetensorsReader original(*files_, fixture("hf_llama_tied"));
    const auto write_with_head = [&](float added) {
        const auto changed = with_config("hf_llama_tied", Json::object());
        std::vector<SafetensorsEntry> entries;
        for (const auto& [name, entry] : original.tensors())
            entries.push_back({name, entry.shape, [&, name = name](std::span<float> values) { original.read(name, values); }});
        entries.push_back({"lm_head.weight", original.tensors().at("model.embed_tokens.weight").shape,
                           [&](std::span<float> values) {
                               original.read("model.embed_tokens.weight", values);
                               values.back() += added;
                           }});
        write_safetensors(*files_, changed / "model.safetensors", entries, {});
        return changed;
    };
    expect_problem(write_with_head(1), "lm_head.weight differs from model.embed_tokens.weight");
    EXPECT_EQ(problems_of(write_with_head(0)), std::vector<std::string>());
}

TEST_F(HuggingFace, nothing_is_written_over_what_is_there) {
    import_hugging_face(*files_, fixture("hf_gpt2"), path("checkpoint"));
    std::filesystem::create_directory(path("full"));
    files_->write_text_atomically(path("full") / "config.json", "mine");
    EXPECT_THROW(import_hugging_face(*files_, fixture("hf_gpt2"), path("full")), UserError);
    EXPECT_THROW(export_hugging_face(*files_, path("checkpoint"), path("full")), UserError);
    EXPECT_THROW(export_hugging_face(*files_, path("checkpoint"), path("full") / "config.json"), UserError);
    EXPECT_EQ(files_->read_text(path("full") / "config.json"), "mine");
    EXPECT_EQ(files_->list(path("full")).size(), 1U);
    EXPECT_FALSE(files_->exists(path("full.partial")));
    std::filesystem::create_directory(path("empty"));
    EXPECT_EQ(export_hugging_face(*files_, path("checkpoint"), path("empty")).section, "parameters");
}

TEST_F(HuggingFace, values_that_are_not_finite_are_told_by_tensor) {
    const SafetensorsReader original(*files_, fixture("hf_gpt2"));
    std::vector<SafetensorsEntry> entries;
    for (const auto& [name, entry] : original.tensors())
        entries.push_back({name, entry.shape, [&, name = name](std::span<float> values) {
                               original.read(name, values);
                               if (name == "transformer.ln_f.bias") values[1] = std::nanf("");
                           }});
    const auto changed = with_config("hf_gpt2", Json::object());
    write_safetensors(*files_, changed / "model.safetensors", entries, {});
    const std::vector<std::string> expected{"1 of 24 values of tensor transformer.ln_f.bias are not finite"};
    EXPECT_EQ(import_hugging_face(*files_, changed, path("checkpoint")).warnings, expected);
    EXPECT_EQ(export_hugging_face(*files_, path("checkpoint"), path("out")).warnings, expected);
}

TEST_F(HuggingFace, export_names_the_broken_checkpoint_it_passed_over_and_the_step_it_took) {
    import_hugging_face(*files_, fixture("hf_gpt2"), path("model"));
    const auto steps = path("run/checkpoints");
    for (const char* step : {"step_4", "step_8"}) {
        std::filesystem::create_directories(steps);
        std::filesystem::copy(path("model"), steps / step, std::filesystem::copy_options::recursive);
    }
    EXPECT_EQ(export_hugging_face(*files_, path("run"), path("whole")).warnings, std::vector<std::string>());
    files_->write_text_atomically(steps / "step_8/site_imported/rank_0/manifest.json", "{");
    const auto warnings = export_hugging_face(*files_, path("run"), path("broken")).warnings;
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("step_8/site_imported is not complete"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("taking " + (steps / "step_4/site_imported").string()), std::string::npos) << warnings[0];
}

TEST(ModelJson, reads_back_what_it_writes) {
    const ModelShape llama{.kind = ModelKind::llama,
                           .layers = 2,
                           .hidden = 24,
                           .heads = 6,
                           .kv_heads = 3,
                           .head_width = 8,
                           .ffn = 40,
                           .vocab = 100,
                           .context = 64,
                           .tied = true,
                           .norm_epsilon = 1.0 / 3,
                           .rope_theta = 12345.678};
    ModelShape gpt2 = llama;
    gpt2.kind = ModelKind::gpt2;
    gpt2.heads = gpt2.kv_heads = 3;
    gpt2.rope_theta = ModelShape().rope_theta;
    for (const ModelShape& shape : {llama, gpt2})
        EXPECT_EQ(model_from_json(model_json(shape), "here"), shape);
    EXPECT_THROW(model_from_json("{}", "here"), UserError);
}

}  // namespace
}  // namespace atl::cli
