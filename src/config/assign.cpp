#include "config/assign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/key_table.h"
#include "config/nearest_name.h"

namespace atl {
namespace {

template <class Owner>
void append_names(std::span<const Key<Owner>> keys, std::vector<std::string>& names) {
    for (const Key<Owner>& key : keys) names.push_back(key.full_name());
}

std::vector<std::string> all_names() {
    std::vector<std::string> names;
    append_names(run_keys(), names);
    append_names(island_keys(), names);
    append_names(site_keys(), names);
    return names;
}

std::vector<std::string> all_tables() {
    std::vector<std::string> tables;
    for (const std::string& name : all_names()) {
        const std::string table = name.substr(0, name.find('.'));
        if (tables.empty() || tables.back() != table) tables.push_back(table);
    }
    return tables;
}

// Puts a setting's value into a field; returns the broken rule, if any.
class Assignment {
  public:
    Assignment(const KeyText& key, const Field& field, const SettingValue& value)
        : key_(key), field_(field), value_(value) {}

    std::string operator()(bool* target) const { return copy(target, "must be true or false"); }
    std::string operator()(std::int64_t* target) const {
        const auto* value = std::get_if<std::int64_t>(&value_);
        if (value == nullptr) return "must be an integer";
        return bounded(target, *value);
    }
    std::string operator()(double* target) const {
        if (const auto* value = std::get_if<double>(&value_)) return bounded(target, *value);
        if (const auto* value = std::get_if<std::int64_t>(&value_))
            return bounded(target, static_cast<double>(*value));
        const auto* text = std::get_if<std::string>(&value_);
        const bool may_be_auto = key_.derived.starts_with("auto");
        if (may_be_auto && text != nullptr && *text == "auto") {
            *target = 0;  // unset, hence derived
            return {};
        }
        return may_be_auto ? "must be a number or \"auto\"" : "must be a number";
    }
    std::string operator()(std::string* target) const {
        if (key_.names.empty()) return copy(target, "must be text in quotes");
        std::size_t index = 0;
        if (std::string rule = find_name(key_.names, index); !rule.empty()) return rule;
        *target = key_.names[index];
        return {};
    }
    std::string operator()(std::vector<std::string>* target) const {
        if (const auto* text = std::get_if<std::string>(&value_)) {
            *target = {*text};
            return {};
        }
        return copy(target, "must be text in quotes, or a list of texts");
    }
    std::string operator()(const AutomaticField& target) const {
        if (const auto* value = std::get_if<std::int64_t>(&value_)) return bounded(target.value, *value);
        const auto* text = std::get_if<std::string>(&value_);
        if (text == nullptr || *text != "auto") return "must be an integer or \"auto\"";
        *target.value = 0;
        return {};
    }
    std::string operator()(const ChoiceField& target) const {
        std::size_t index = 0;
        if (std::string rule = find_name(target.names, index); !rule.empty()) return rule;
        *target.index = static_cast<unsigned char>(index);
        return {};
    }

  private:
    template <class T>
    std::string copy(T* target, const char* rule) const {
        const auto* value = std::get_if<T>(&value_);
        if (value == nullptr) return rule;
        *target = *value;
        return {};
    }

    template <class T>
    std::string bounded(T* target, T value) const {
        const auto number = static_cast<double>(value);
        if (!(number >= key_.minimum && number <= key_.maximum))  // false for NaN
            return fmt::format("outside its range: {}", range_text(key_, field_));
        *target = value;
        return {};
    }

    std::string find_name(std::span<const std::string_view> names, std::size_t& index) const {
        const auto* text = std::get_if<std::string>(&value_);
        const auto found = text == nullptr ? names.end() : std::find(names.begin(), names.end(), *text);
        if (found != names.end()) {
            index = static_cast<std::size_t>(found - names.begin());
            return {};
        }
        std::string rule = fmt::format("must be one of {}", fmt::join(names, ", "));
        if (text != nullptr)
            rule += "; nearest: " + nearest_name(*text, std::vector<std::string>(names.begin(), names.end()));
        return rule;
    }

    const KeyText& key_;
    const Field& field_;
    const SettingValue& value_;
};

class Assigner {
  public:
    Assigner(RunConfig& config, Origins& origins, Problems& problems, std::vector<std::string>& notices)
        : config_(config), origins_(origins), problems_(problems), notices_(notices) {}

    void assign_run(const Setting& given) {
        if (given.key.empty()) return check_table(given);
        const Setting setting = without_alias(given);
        if (assign(run_keys(), config_, setting, setting.full_name())) return;
        if (assign(island_keys(), config_.island, setting, setting.full_name())) return;
        if (setting.table == "site") return;  // check_table has spoken
        report_unknown(setting);
    }

    void assign_site(const SiteSettings& entry) {
        SiteConfig& site = config_.sites.emplace_back();
        site.island = config_.island;
        // The name first: it stands in the origins of the other keys.
        bool named = false;
        for (const Setting& setting : entry.settings)
            if (setting.key == "name") named = assign(site_keys(), site, setting, "site.name");
        if (!named) problems_.add(entry.where, "[[site]]", "must have a name");
        const std::string prefix = "site." + site.name + ".";
        origins_.set(prefix + "name", entry.where);
        for (const Setting& setting : entry.settings) {
            if (setting.key == "name") continue;
            if (assign(site_keys(), site, setting, prefix + setting.key)) continue;
            Setting as_island = setting;
            as_island.table = "island";
            if (!assign(island_keys(), site.island, as_island, prefix + setting.key)) report_unknown(setting);
        }
    }

  private:
    template <class Owner>
    bool assign(std::span<const Key<Owner>> keys, Owner& owner, const Setting& setting,
                const std::string& origin_name) {
        const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key<Owner>& candidate) {
            return candidate.table == setting.table && candidate.name == setting.key;
        });
        if (key == keys.end()) return false;
        const Field field = key->field(owner);
        const std::string rule = std::visit(Assignment(*key, field, setting.value), field);
        if (!rule.empty()) {
            problems_.add(setting, rule);
            origins_.set_wrong(origin_name);
        }
        // A wrong value counts as given: rules about what is missing would only repeat the complaint.
        origins_.set(origin_name, setting.where);
        return true;
    }

    void check_table(const Setting& table) {
        const std::vector<std::string> known = all_tables();
        if (table.table == "site") {
            problems_.add(table.where, "[site]", "sites are written [[site]], one for each");
        } else if (std::find(known.begin(), known.end(), table.table) == known.end()) {
            problems_.add(
                table.where, "[" + table.table + "]",
                fmt::format("unknown table; nearest known table: [{}]", nearest_name(table.table, known)));
            unknown_tables_.insert(table.table);
        }
    }

    void report_unknown(const Setting& setting) {
        if (unknown_tables_.contains(setting.table)) return;  // one complaint is enough
        const std::vector<std::string> tables = all_tables();
        if (setting.table.empty() && setting.key == "site")
            return problems_.add(setting, "sites are written [[site]], one for each");
        if (setting.table.empty() && std::find(tables.begin(), tables.end(), setting.key) != tables.end())
            return problems_.add(setting, fmt::format("[{0}] is a table: its keys stand below a line [{0}]", setting.key));
        const auto* odd = std::get_if<OddValue>(&setting.value);
        if (odd != nullptr && odd->kind == "table")
            return problems_.add(setting.where, fmt::format("[{}]", setting.full_name()), "no table stands inside another");
        std::vector<std::string> names = all_names();
        if (setting.table == "site")
            for (const Key<IslandConfig>& key : island_keys())
                names.push_back("site." + std::string(key.name));
        problems_.add(setting, fmt::format("unknown key; nearest known key: {}",
                                           nearest_name(setting.full_name(), names)));
    }

    Setting without_alias(const Setting& setting) {
        for (const KeyAlias& alias : key_aliases()) {
            if (setting.full_name() != alias.old_name) continue;
            const std::string name(alias.name);
            if (origins_.given(name))
                problems_.add(setting,
                              fmt::format("means {}, which {} sets too", name, origins_.where(name)));
            notices_.push_back(
                fmt::format("{}: {} is read as {}", setting.where, alias.old_name, alias.name));
            Setting renamed = setting;
            renamed.key = name.substr(name.find('.') + 1);
            return renamed;
        }
        return setting;
    }

    RunConfig& config_;
    Origins& origins_;
    Problems& problems_;
    std::vector<std::string>& notices_;
    std::set<std::string> unknown_tables_;
};

}  // namespace

void assign_settings(const Settings& settings, RunConfig& config, Origins& origins, Problems& problems,
                     std::vector<std::string>& notices) {
    Assigner assigner(config, origins, problems, notices);
    for (const Setting& setting : settings.settings) assigner.assign_run(setting);
    for (const SiteSettings& site : settings.sites) assigner.assign_site(site);
}

}  // namespace atl
