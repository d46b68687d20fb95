// The one file that sees toml++.
#include "config/setting.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "config/nearest_name.h"
#include "core/error.h"

namespace atl {
namespace {

std::string kind_name(const toml::node& node) {
    std::ostringstream stream;
    stream << node.type();
    return stream.str();
}

SettingValue to_value(const toml::node& node) {
    if (const auto* value = node.as_boolean()) return value->get();
    if (const auto* value = node.as_integer()) return value->get();
    if (const auto* value = node.as_floating_point()) return value->get();
    if (const auto* value = node.as_string()) return value->get();
    const auto* array = node.as_array();
    if (array == nullptr) return OddValue{kind_name(node)};
    std::vector<std::string> texts;
    for (const toml::node& item : *array) {
        if (!item.is_string()) return OddValue{"a list that holds more than texts"};
        texts.push_back(item.as_string()->get());
    }
    return texts;
}

std::string print(const SettingValue& value, const toml::node& node) {
    if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("\"{}\"", *text);
    if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
    std::ostringstream stream;
    node.visit([&](const auto& typed) { stream << typed; });
    return stream.str();
}

Setting to_setting(std::string table, std::string_view key, const toml::node& node, std::string where) {
    SettingValue value = to_value(node);
    std::string printed = print(value, node);
    return {std::move(table), std::string(key), std::move(value), std::move(printed), std::move(where)};
}

class FileReader {
  public:
    FileReader(const FileSystem& files, Problems& problems) : files_(files), problems_(problems) {}

    void read(const std::filesystem::path& path, const std::string& from) {
        const std::filesystem::path normal = path.lexically_normal();
        if (std::find(open_.begin(), open_.end(), normal) != open_.end())
            return problems_.add(from, path.string(), "includes itself");
        open_.push_back(normal);
        try {
            const std::string text = files_.read_text(path);
            const toml::table root = toml::parse(text, path.string());
            read_includes(root, path);
            read_tables(root, path);
        } catch (const toml::parse_error& error) {
            problems_.add(at(path, error.source()), "not TOML", error.description());
        } catch (const StorageError& error) {
            problems_.add(from, "can't be read", error.what());
        }
        open_.pop_back();
    }

    Settings take() { return std::move(result_); }

  private:
    static std::string at(const std::filesystem::path& path, const toml::source_region& source) {
        return fmt::format("{}:{}", path.string(), source.begin.line);
    }

    void read_includes(const toml::table& root, const std::filesystem::path& path) {
        const toml::node* include = root.get("include");
        if (include == nullptr) return;
        const std::string where = at(path, include->source());
        const SettingValue value = to_value(*include);
        std::vector<std::string> names;
        if (const auto* name = std::get_if<std::string>(&value)) names = {*name};
        if (const auto* list = std::get_if<std::vector<std::string>>(&value)) names = *list;
        if (names.empty())
            return problems_.add(where, "include = " + print(value, *include),
                                 "must be a path or a list of paths");
        for (std::string_view name : names) {
            if (name.starts_with('@')) name.remove_prefix(1);
            read(path.parent_path() / name, where);
        }
    }

    void read_tables(const toml::table& root, const std::filesystem::path& path) {
        for (const auto& [name, node] : root) {
            if (name.str() == "include") continue;
            const std::string where = at(path, node.source());
            if (name.str() == "site" && node.is_array_of_tables()) {
                read_sites(*node.as_array(), path);
            } else if (const toml::table* table = node.as_table()) {
                read_table(std::string(name.str()), *table, path, where);
            } else {
                result_.settings.push_back(to_setting("", name.str(), node, where));
            }
        }
    }

    void read_table(const std::string& name, const toml::table& table, const std::filesystem::path& path,
                    const std::string& where) {
        // An empty entry stands for the table itself, so that an unknown one is noticed without keys too.
        result_.settings.push_back({name, "", OddValue{"table"}, "[" + name + "]", where});
        for (const auto& [key, node] : table)
            result_.settings.push_back(to_setting(name, key.str(), node, at(path, node.source())));
    }

    void read_sites(const toml::array& sites, const std::filesystem::path& path) {
        result_.sites.clear();
        for (const toml::node& site : sites) {
            SiteSettings& entry = result_.sites.emplace_back();
            entry.where = at(path, site.source());
            for (const auto& [key, node] : *site.as_table())
                entry.settings.push_back(to_setting("site", key.str(), node, at(path, node.source())));
        }
    }

    const FileSystem& files_;
    Problems& problems_;
    std::vector<std::filesystem::path> open_;  // being read, outermost first
    Settings result_;
};

// As TOML if it can be read so, else as plain text: --set run.name=mine needs no quotes.
Setting parse_value(const std::string& table, const std::string& key, const std::string& text,
                    const std::string& where) {
    try {
        const toml::table parsed = toml::parse("value = " + text);
        Setting setting = to_setting(table, key, *parsed.get("value"), where);
        setting.printed = text;
        return setting;
    } catch (const toml::parse_error&) {
        return {table, key, text, text, where};
    }
}

bool has_name(const SiteSettings& site, const std::string& name) {
    return std::any_of(site.settings.begin(), site.settings.end(), [&](const Setting& setting) {
        const auto* text = std::get_if<std::string>(&setting.value);
        return setting.key == "name" && text != nullptr && *text == name;
    });
}

void override_site(const std::string& name, Setting setting, Settings& settings, Problems& problems) {
    // Without any [[site]] there is one of this name.
    if (settings.sites.empty())
        settings.sites.push_back(
            {setting.where, {{"site", "name", std::string("local"), "\"local\"", setting.where}}});
    const auto site = std::find_if(settings.sites.begin(), settings.sites.end(),
                                   [&](const SiteSettings& entry) { return has_name(entry, name); });
    if (site != settings.sites.end()) return site->settings.push_back(std::move(setting));
    std::vector<std::string> names;
    for (const SiteSettings& entry : settings.sites)
        for (const Setting& known : entry.settings)
            if (known.key == "name" && std::holds_alternative<std::string>(known.value))
                names.push_back(std::get<std::string>(known.value));
    problems.add(setting.where, fmt::format("site.{}.{} = {}", name, setting.key, setting.printed),
                 fmt::format("unknown site; nearest known site: {}", nearest_name(name, names)));
}

}  // namespace

void Problems::add(std::string_view where, std::string_view subject, std::string_view rule) {
    Problem problem{.file = std::string(where), .text = fmt::format("{}: {}: {}", where, subject, rule)};
    const std::size_t colon = where.rfind(':');
    const char* end = where.data() + where.size();
    if (colon != std::string_view::npos &&
        std::from_chars(where.data() + colon + 1, end, problem.line).ptr == end)
        problem.file.resize(colon);
    // Sites that share a key of [island] would all blame it.
    if (std::ranges::find(problems_, problem.text, &Problem::text) == problems_.end())
        problems_.push_back(std::move(problem));
}

std::vector<std::string> Problems::lines() const {
    const auto place = [&](const Problem& problem) {
        const auto first = std::ranges::find(problems_, problem.file, &Problem::file);
        return std::pair(first - problems_.begin(), problem.line);
    };
    std::vector<const Problem*> sorted;
    for (const Problem& problem : problems_) sorted.push_back(&problem);
    std::ranges::stable_sort(sorted, {}, [&](const Problem* problem) { return place(*problem); });
    std::vector<std::string> lines;
    for (const Problem* problem : sorted) lines.push_back(problem->text);
    return lines;
}

void Problems::add(const Setting& setting, std::string_view rule) {
    add(setting.where, fmt::format("{} = {}", setting.full_name(), setting.printed), rule);
}

Settings read_settings(const FileSystem& files, const std::filesystem::path& path, Problems& problems) {
    FileReader reader(files, problems);
    reader.read(path, path.string());
    return reader.take();
}

void apply_override(const std::string& text, const std::string& where, Settings& settings,
                    Problems& problems) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::size_t dot = name.rfind('.');
    if (equals == std::string::npos || dot == std::string::npos || dot == 0)
        return problems.add(where, text, "must be table.key=value");
    if (name.substr(0, dot) == "site") return problems.add(where, text, "must be site.NAME.key=value");
    Setting setting = parse_value(name.substr(0, dot), name.substr(dot + 1), text.substr(equals + 1), where);
    if (!setting.table.starts_with("site.")) return settings.settings.push_back(std::move(setting));
    const std::string site = setting.table.substr(5);
    setting.table = "site";
    override_site(site, std::move(setting), settings, problems);
}

}  // namespace atl
