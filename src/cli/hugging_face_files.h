// Models between Hugging Face directories (config.json and safetensors) and Atoll's checkpoints.
//
// Memory: one tensor at a time (a tied head and its embedding: two). `out` must be absent or empty, and appears whole or not
// at all. Errors: UserError with every problem found (what the model asks for and isn't built
// here, tensors missing, of another shape or unknown); CorruptDataError for damaged files; StorageError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "model/model_shape.h"

namespace atl::cli {

struct ConvertedModel {
    ModelShape shape;
    std::int64_t parameters = 0;      // count; tied tensors once
    std::filesystem::path directory;  // what was written
    std::string section;              // of the checkpoint: "parameters" or "anchor"
    std::int64_t step = 0;            // of the checkpoint
    std::vector<std::string> warnings = {};  // values that are not finite; newer checkpoints that are broken
};

// Writes a checkpoint of step 0 with the parameters alone into `out`, as `model.init` and `atoll eval` take it.
ConvertedModel import_hugging_face(FileSystem& files, const std::filesystem::path& directory,
                                   const std::filesystem::path& out);

// Writes config.json and model.safetensors into `out`. `checkpoint` is any path that CheckpointReader takes;
// θ_outer where the checkpoint has it, else the parameters.
ConvertedModel export_hugging_face(FileSystem& files, const std::filesystem::path& checkpoint,
                                   const std::filesystem::path& out);

}  // namespace atl::cli
