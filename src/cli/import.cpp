// `atoll import HF_DIR --out CKPT` and `atoll export CKPT --out HF_DIR`.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/hugging_face_files.h"
#include "cli/verbs.h"

namespace atl::cli {
namespace {

struct ConvertOptions {
    std::filesystem::path from;
    std::filesystem::path out;
    bool json = false;
};

using Convert = ConvertedModel (*)(FileSystem&, const std::filesystem::path&, const std::filesystem::path&);

int run_conversion(const Context& context, const ConvertOptions& options, Convert convert) {
    const ConvertedModel model = convert(*context.files, options.from, options.out);
    for (const auto& warning : model.warnings) context.log.warning("{}", warning);
    const char* kind = model.shape.kind == ModelKind::llama ? "llama" : "gpt2";
    if (options.json) {
        const nlohmann::json report = {{"kind", kind},
                                       {"parameters", model.parameters},
                                       {"section", model.section},
                                       {"step", model.step},
                                       {"out", model.directory.string()}};
        fmt::print("{}\n", report.dump(2));
        return kSuccess;
    }
    fmt::print("{} with {} parameters (step {}) written to {}\n", kind, model.parameters, model.step,
               model.directory.string());
    return kSuccess;
}

void add_conversion(CLI::App& verb, Context& context, const char* from, const char* from_help,
                    const char* out_help, Convert convert) {
    const auto options = std::make_shared<ConvertOptions>();
    verb.add_option("from", options->from, from_help)->required()->type_name(from)->check(existing_folder());
    verb.add_option("--out", options->out, out_help)->required()->type_name("DIR")->check(writable_folder());
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options, convert] {
        context.command = [&context, options, convert] { return run_conversion(context, *options, convert); };
    });
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
    add_conversion(*app.add_subcommand("import", "Turn a Hugging Face model into a checkpoint"), context,
                   "HF_DIR", "Folder with config.json and safetensors (Llama or GPT-2)",
                   "Folder for the checkpoint, for model.init, eval and export; must be new or empty", import_hugging_face);
}

void add_export(CLI::App& app, Context& context) {
    add_conversion(*app.add_subcommand("export", "Turn a checkpoint into a Hugging Face model"), context,
                   "CKPT", "A run's folder, its checkpoints, one step of them or an imported model",
                   "Folder for config.json and model.safetensors; must be new or empty", export_hugging_face);
}

}  // namespace atl::cli
