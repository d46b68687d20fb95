// A model's shape as JSON text: the content of a Hugging Face config.json, which checkpoints keep too.
//
// Reading drops nulls and joins the keys of nested objects with dots ("rope_parameters.rope_theta"). A list that
// isn't one of texts becomes its JSON text.
// Errors: UserError with every problem, each beginning with `where`.
#pragma once

#include <string>

#include "model/hugging_face.h"

namespace atl {

HuggingFaceConfig hugging_face_config_from_json(const std::string& text, const std::string& where);

std::string model_json(const ModelShape& shape);  // sorted keys, one line each
ModelShape model_from_json(const std::string& text, const std::string& where);

}  // namespace atl
