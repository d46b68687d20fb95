#include "config/load_config.h"

#include <fmt/format.h>

#include "config/key_table.h"
#include "config/rules.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr int kCommentColumn = 36;

void append_line(const KeyText& key, const Field& field, std::string& text) {
    const std::string line = fmt::format("{} = {}", key.name, value_text(field));
    const std::string unit = key.unit.empty() ? "" : fmt::format("{}: ", key.unit);
    text += fmt::format("{:<{}}  # {}{}\n", line, kCommentColumn, unit, key.description);
}

template <class Owner>
void append_table(std::span<const Key<Owner>> keys, Owner& owner, std::string& text) {
    std::string_view table;
    for (const Key<Owner>& key : keys) {
        if (key.table != table) text += fmt::format("\n[{}]\n", table = key.table);
        append_line(key, key.field(owner), text);
    }
}

}  // namespace

LoadedConfig load_config(const FileSystem& files, const ConfigSource& source) {
    Problems problems;
    Settings settings = read_settings(files, source.file, problems);
    for (const std::string& text : source.overrides) apply_override(text, "--set", settings, problems);

    LoadedConfig loaded;
    Origins origins(source.file.string());
    assign_settings(settings, loaded.config, origins, problems, loaded.notices);
    derive_values(loaded.config, origins, problems);
    check_combinations(loaded.config, origins, problems);
    if (source.check_files) check_files(loaded.config, origins, problems);
    if (!problems.empty()) throw UserError(problems.lines());
    return loaded;
}

RunConfig changed_config(const RunConfig& config, const std::vector<std::string>& assignments) {
    Problems problems;
    Settings settings;
    for (const std::string& text : assignments) apply_override(text, "set", settings, problems);
    RunConfig changed = config;
    Origins origins("set");
    std::vector<std::string> notices;
    assign_settings(settings, changed, origins, problems, notices);
    // What was resolved before is not derived again.
    for (const Key<RunConfig>& key : run_keys())
        if (!origins.given(key.full_name())) origins.set(key.full_name(), "the run");
    derive_values(changed, origins, problems);
    check_combinations(changed, origins, problems);
    if (!problems.empty()) throw UserError(problems.lines());
    return changed;
}

std::string to_toml(const RunConfig& config) {
    RunConfig copy = config;  // fields are reached through a mutable owner
    std::string text = "# Every key of this run, as resolved.\n";
    append_table(run_keys(), copy, text);
    append_table(island_keys(), copy.island, text);
    for (SiteConfig& site : copy.sites) {
        text += "\n[[site]]\n";
        for (const Key<SiteConfig>& key : site_keys()) append_line(key, key.field(site), text);
        for (const Key<IslandConfig>& key : island_keys()) append_line(key, key.field(site.island), text);
    }
    return text;
}

}  // namespace atl
