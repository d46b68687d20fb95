#include "model/model_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace atl {
namespace {

using Json = nlohmann::json;

HuggingFaceField field_from(const Json& json) {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    const bool is_list_of_texts =
        json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& e) { return e.is_string(); });
    if (is_list_of_texts) return json.get<std::vector<std::string>>();
    return json.dump();
}

void add_fields(const Json& json, const std::string& prefix, HuggingFaceConfig& config) {
    for (const auto& [key, value] : json.items()) {
        if (value.is_object())
            add_fields(value, prefix + key + ".", config);
        else if (!value.is_null())
            config[prefix + key] = field_from(value);
    }
}

}  // namespace

HuggingFaceConfig hugging_face_config_from_json(const std::string& text, const std::string& where) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) throw UserError(fmt::format("{}: not a JSON object", where));
    HuggingFaceConfig config;
    add_fields(json, "", config);
    return config;
}

std::string model_json(const ModelShape& shape) {
    Json json = Json::object();
    for (const auto& [key, field] : hugging_face_config(shape))
        std::visit([&, &name = key](const auto& value) { json[name] = value; }, field);
    return json.dump(2);
}

ModelShape model_from_json(const std::string& text, const std::string& where) {
    const auto config = hugging_face_config_from_json(text, where);
    try {
        return shape_from_hugging_face(config);
    } catch (const UserError& error) {
        std::vector<std::string> problems;
        for (const auto& problem : error.problems()) problems.push_back(where + ": " + problem);
        throw UserError(problems);
    }
}

}  // namespace atl
