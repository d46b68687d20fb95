// How keys and their values read: TOML values, ranges, the table of configs/README.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "config/key_table.h"

namespace atl {
namespace {

std::string toml_quoted(std::string_view text) {
    std::string result = "\"";
    for (const char character : text) {
        if (character == '"' || character == '\\') result += '\\';
        if (static_cast<unsigned char>(character) < 0x20) {
            result += fmt::format("\\u{:04x}", character);
        } else {
            result += character;
        }
    }
    return result + '"';
}

struct ValueText {
    std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
    std::string operator()(const std::int64_t* value) const { return fmt::format("{}", *value); }
    std::string operator()(const double* value) const {
        const std::string digits = fmt::format("{}", *value);
        return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
    }
    std::string operator()(const std::string* value) const { return toml_quoted(*value); }
    std::string operator()(const std::vector<std::string>* values) const {
        std::vector<std::string> items;
        for (const std::string& value : *values) items.push_back(toml_quoted(value));
        return fmt::format("[{}]", fmt::join(items, ", "));
    }
    std::string operator()(const AutomaticField& field) const {
        return *field.value == 0 ? toml_quoted("auto") : fmt::format("{}", *field.value);
    }
    std::string operator()(const ChoiceField& choice) const { return toml_quoted(choice.names[*choice.index]); }
};

std::string limit_text(double limit) {
    return std::floor(limit) == limit && std::abs(limit) < 1e7 ? fmt::format("{:.0f}", limit)
                                                               : fmt::format("{}", limit);
}

std::string kind_text(const Field& field) {
    constexpr const char* kKinds[] = {
        "true or false", "integer", "number", "text", "text or list of texts", "\"auto\" or integer"};
    return std::holds_alternative<ChoiceField>(field) ? "" : kKinds[field.index()];
}

template <class Owner>
void append_rows(std::span<const Key<Owner>> keys, std::string& table) {
    Owner defaults;
    for (const Key<Owner>& key : keys) {
        const Field field = key.field(defaults);
        const std::string standard =
            key.derived.empty() ? "`" + value_text(field) + "`" : std::string(key.derived);
        table +=
            fmt::format("| `{}` | {} | {} | {} | {} |\n", key.full_name(), key.unit.empty() ? "–" : key.unit,
                        range_text(key, field), standard, key.description);
    }
}

}  // namespace

std::string value_text(const Field& field) {
    return std::visit(ValueText{}, field);
}

std::string range_text(const KeyText& key, const Field& field) {
    if (const auto* choice = std::get_if<ChoiceField>(&field))
        return fmt::format("{}", fmt::join(choice->names, ", "));
    if (!key.names.empty()) return fmt::format("{}", fmt::join(key.names, ", "));
    const bool counted = std::holds_alternative<std::int64_t*>(field) ||
                         std::holds_alternative<double*>(field) ||
                         std::holds_alternative<AutomaticField>(field);
    if (!counted) return kind_text(field);
    const std::string minimum = limit_text(key.minimum);
    if (key.maximum >= kUnbounded) return fmt::format("{} ≥ {}", kind_text(field), minimum);
    return fmt::format("{} {} … {}", kind_text(field), minimum, limit_text(key.maximum));
}

std::string key_table_markdown() {
    std::string table = "| key | unit | range | default | meaning |\n|---|---|---|---|---|\n";
    append_rows(run_keys(), table);
    append_rows(island_keys(), table);
    append_rows(site_keys(), table);
    return table;
}

}  // namespace atl
