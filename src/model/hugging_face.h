// How a model is spelled in the Hugging Face format: config.json's fields, and which tensors are stored under which
// name and transposed. Data only; reading and writing files is src/checkpoint's.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "model/tensors.h"

namespace atl {

// Fields of nested objects are named "outer.inner"; fields that are null are left out.
using HuggingFaceField = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;
using HuggingFaceConfig = std::map<std::string, HuggingFaceField>;

HuggingFaceConfig hugging_face_config(const ModelShape& shape);
// Throws UserError with every field that is missing, of the wrong type or that asks for what isn't built here
// (another activation, scaled rotary positions, biases). Fields it doesn't know are ignored.
ModelShape shape_from_hugging_face(const HuggingFaceConfig& config);

struct HuggingFaceTensor {
    std::string name;         // in the file
    std::string tensor;       // ours
    bool transposed = false;  // stored [in, out]
    bool operator==(const HuggingFaceTensor&) const = default;
};

// In the order of model_tensors. Files may lack the prefix "transformer." of GPT-2's names and may hold extra
// tensors (a tied head, attention masks): see is_ignorable.
std::vector<HuggingFaceTensor> hugging_face_tensors(const ModelShape& shape);
bool is_ignorable(const ModelShape& shape, const std::string& name_in_file);

}  // namespace atl
