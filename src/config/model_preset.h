// Known model shapes by name.
//
// Source: the published configuration files of the models named; `context` is what they were trained with
// (Llama 3.2 without its long-context scaling of the rotary frequencies).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace atl {

std::optional<ModelConfig> model_preset(std::string_view name);
std::vector<std::string> model_preset_names();

}  // namespace atl
