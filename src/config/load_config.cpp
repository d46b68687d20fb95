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
    for (const std::string& text : source.overrides) apply_override(text, settings, problems);

    LoadedConfig loaded;
    Origins origins(source.file.string());
    assign_settings(settings, loaded.config, origins, problems, loaded.notices);
    derive_values(loaded.config, origins, problems);
    check_combinations(loaded.config, origins, problems);
    if (source.check_files) check_files(loaded.config, origins, problems);
    if (!problems.empty()) throw UserError(problems.lines());
    return loaded;
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
