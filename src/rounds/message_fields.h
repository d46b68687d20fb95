// Reads the fields of a MessagePack map and insists that they are what they should be. Private to src/rounds.
//
// Every accessor throws CorruptDataError naming the field; done() demands that nothing else was in the map.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/hash.h"
#include "core/ids.h"
#include "rounds/types.h"

namespace atl {

template <class Json>
class MessageFields {
  public:
    MessageFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
        if (!object.is_object()) fail("", "is not a map");
    }

    std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) {
        const Json& value = get(key);
        if (!value.is_number_integer()) fail(key, "is not an integer");
        if (value.is_number_unsigned() &&
            value.template get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max())) {
            fail(key, "is out of range");
        }
        const auto number = value.template get<std::int64_t>();
        if (number < low || number > high)
            fail(key, fmt::format("is {}, not in [{}, {}]", number, low, high));
        return number;
    }
    std::int64_t count(const char* key) { return integer(key, 0, kMost); }
    std::uint64_t unsigned_integer(const char* key) {
        const Json& value = get(key);
        if (!value.is_number_integer() ||
            (!value.is_number_unsigned() && value.template get<std::int64_t>() < 0)) {
            fail(key, "is not an unsigned integer");
        }
        return value.template get<std::uint64_t>();
    }
    template <class Id>
    Id id(const char* key) {
        return Id(static_cast<typename Id::integer_type>(integer(
            key, 0, std::min<std::int64_t>(kMost, std::numeric_limits<typename Id::integer_type>::max()))));
    }
    SiteId site(const char* key) { return SiteId(std::int32_t(integer(key, 0, kMostSites - 1))); }
    Incarnation incarnation(const char* key) { return Incarnation(unsigned_integer(key)); }
    double number(const char* key) {
        const Json& value = get(key);
        if (!value.is_number() || !std::isfinite(value.template get<double>()))
            fail(key, "is not a finite number");
        return value.template get<double>();
    }
    bool boolean(const char* key) {
        const Json& value = get(key);
        if (!value.is_boolean()) fail(key, "is not true or false");
        return value.template get<bool>();
    }
    std::string text(const char* key) { return text_of(get(key), key); }
    std::string text_of(const Json& value, const char* key) const {
        if (!value.is_string()) fail(key, "is not text");
        const auto& text = value.template get_ref<const std::string&>();
        if (text.size() > kLongestText) fail(key, fmt::format("has {} bytes", text.size()));
        return text;
    }
    template <class Enum>
    Enum enumeration(const char* key, Enum last) {
        return Enum(std::uint8_t(integer(key, 0, std::int64_t(last))));
    }
    Hash128 hash(const char* key) { return hash_of(get(key), key); }
    Hash128 hash_of(const Json& value, const char* key) const {
        if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
            !value[1].is_number_unsigned()) {
            fail(key, "is not a hash");
        }
        return {value[0].template get<std::uint64_t>(), value[1].template get<std::uint64_t>()};
    }
    const Json& list(const char* key) {
        const Json& value = get(key);
        if (!value.is_array()) fail(key, "is not a list");
        if (value.size() > kLongestList) fail(key, fmt::format("has {} entries", value.size()));
        return value;
    }
    std::vector<SiteId> sites(const char* key) {
        std::vector<SiteId> ids;
        for (const Json& value : list(key)) {
            if (!value.is_number_integer()) fail(key, "holds something else than a site");
            const auto id = value.template get<std::int64_t>();
            const bool ascending = ids.empty() || id > ids.back().value();
            if (id < 0 || id >= kMostSites || !ascending) fail(key, "is not a list of sites in order");
            ids.push_back(SiteId(std::int32_t(id)));
        }
        return ids;
    }
    // Null or absent is not the same: every field is always there.
    const Json* optional(const char* key) {
        const Json& value = get(key);
        return value.is_null() ? nullptr : &value;
    }
    const Json& map(const char* key) {
        const Json& value = get(key);
        if (!value.is_object() || value.size() > kLongestList) fail(key, "is not a map");
        return value;
    }
    MessageFields within(const char* key) { return MessageFields(get(key), where_ + "." + key); }
    MessageFields item(const Json& value, const char* key) const {
        return MessageFields(value, where_ + "." + key);
    }
    void demand(bool holds, const char* key, const std::string& otherwise) const {
        if (!holds) fail(key, otherwise);
    }
    void done() const {
        if (read_ != object_.size()) fail("", "has fields of another version");
    }
    [[noreturn]] void fail(const std::string& key, const std::string& what) const {
        throw CorruptDataError(fmt::format("[control] {}{}{} {}", where_, key.empty() ? "" : ".", key, what));
    }

    static constexpr std::int64_t kMost = std::int64_t(1) << 53;
    static constexpr std::int64_t kMostSites = 4096;

  private:
    static constexpr std::size_t kLongestText = 64 * 1024;
    static constexpr std::size_t kLongestList = 1 << 20;

    const Json& get(const char* key) {
        const auto found = object_.find(key);
        if (found == object_.end()) fail(key, "is missing");
        ++read_;
        return *found;
    }

    const Json& object_;
    std::string where_;
    std::size_t read_ = 0;
};

}  // namespace atl
