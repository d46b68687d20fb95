// Every key of a config, once: name, unit, range, default and meaning. Parsing, checking, printing and the
// table in configs/README.md are all driven by it.
//
// Ownership: names live for ever; a Field points into the struct it was asked of.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/run_config.h"

namespace atl {

// One of a fixed list of names, stored as its index.
struct ChoiceField {
    unsigned char* index;
    std::span<const std::string_view> names;
};

// A whole number, or "auto", stored as 0.
struct AutomaticField {
    std::int64_t* value;
};

using Field = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                           AutomaticField, ChoiceField>;

// A maximum that isn't worth telling.
inline constexpr double kUnbounded = 1e15;

struct KeyText {
    std::string_view table;        // "train"
    std::string_view name;         // "steps"
    std::string_view unit;         // "" = none
    std::string_view description;  // no full stop
    double minimum = std::numeric_limits<double>::lowest();
    double maximum = std::numeric_limits<double>::max();
    std::string_view derived = {};                 // what stands in for a value that is not given
    std::span<const std::string_view> names = {};  // of a text: the values it may take
    std::string full_name() const;                 // "train.steps"
};

template <class Owner>
struct Key : KeyText {
    Field (*field)(Owner&);
};

std::span<const Key<RunConfig>> run_keys();        // all tables but [island] and [[site]]
std::span<const Key<IslandConfig>> island_keys();  // [island], and in [[site]] too
std::span<const Key<SiteConfig>> site_keys();      // [[site]] alone

// Old spellings that are still understood.
struct KeyAlias {
    std::string_view old_name;  // "outer.local_steps"
    std::string_view name;      // "outer.inner_steps"
};
std::span<const KeyAlias> key_aliases();

std::string range_text(const KeyText& key, const Field& field);  // "1 … 1000", "≥ 0", "adamw, sgd"
std::string value_text(const Field& field);                      // as TOML
// The rows of the table in configs/README.md.
std::string key_table_markdown();

}  // namespace atl
