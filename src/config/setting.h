// What a config file says, before it is known whether it makes sense: keys, values, and where each stands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/file_system.h"

namespace atl {

// A value of a kind that no key takes: a date, a table, a list of numbers.
struct OddValue {
    std::string kind;
};

using SettingValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, OddValue>;

struct Setting {
    std::string table;  // "" = outside all tables
    std::string key;    // "" = the table itself, in the wrong shape
    SettingValue value;
    std::string printed;  // the value as it was written
    std::string where;    // "run.toml:12" or "--set"

    std::string full_name() const { return table.empty() ? key : key.empty() ? table : table + "." + key; }
};

struct SiteSettings {
    std::string where;
    std::vector<Setting> settings;
};

// In rising priority: a later setting of one key wins.
struct Settings {
    std::vector<Setting> settings;
    std::vector<SiteSettings> sites;  // of the last file that has any
};

// Everything wrong with the input so far, one line each.
class Problems {
  public:
    void add(std::string_view where, std::string_view subject, std::string_view rule);
    void add(const Setting& setting, std::string_view rule);
    bool empty() const { return problems_.empty(); }
    // One a problem, in the order in which their places stand in their files.
    std::vector<std::string> lines() const;

  private:
    struct Problem {
        std::string file;  // or "--set"
        std::int64_t line = 0;
        std::string text;
    };
    std::vector<Problem> problems_;
};

// A file with everything it includes. Syntax errors and include cycles become problems.
Settings read_settings(const FileSystem& files, const std::filesystem::path& path, Problems& problems);
// One "table.key=value"; `where` says where it was given. "site.NAME.key=value" reaches into the site of that name.
void apply_override(const std::string& text, const std::string& where, Settings& settings,
                    Problems& problems);

}  // namespace atl
