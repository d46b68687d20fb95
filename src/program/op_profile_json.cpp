// The text form of a profile: one JSON object with the fields of the structs under their own names.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "program/op_profile.h"

namespace atl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

// An object of the text and where it stands, for messages.
class Reader {
  public:
    Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json_.is_object()) throw UserError(where_ + ": not a JSON object");
    }

    template <class T>
    T get(const char* key) const {
        const Json& field = find(key);
        try {
            return field.get<T>();
        } catch (const Json::exception&) {
            throw UserError(fmt::format("{}: {} = {} is of the wrong type", where_, key, field.dump()));
        }
    }
    double positive(const char* key) const {
        const auto number = get<double>(key);
        if (!(number > 0)) throw UserError(fmt::format("{}: {} = {} must be above 0", where_, key, number));
        return number;
    }
    // A name from a closed list.
    template <class FromName>
    auto named(const char* key, FromName from_name) const {
        const auto text = get<std::string>(key);
        const auto found = from_name(text);
        if (!found) throw UserError(fmt::format("{}: {} \"{}\" is unknown", where_, key, text));
        return *found;
    }
    Reader object(const char* key) const { return {find(key), fmt::format("{}: {}", where_, key)}; }
    std::vector<Reader> list(const char* key) const {
        const Json& field = find(key);
        if (!field.is_array()) throw UserError(fmt::format("{}: {} is not a list", where_, key));
        std::vector<Reader> items;
        for (std::size_t i = 0; i < field.size(); ++i)
            items.emplace_back(field[i], fmt::format("{}: {}[{}]", where_, key, i));
        return items;
    }

  private:
    const Json& find(const char* key) const {
        const auto found = json_.find(key);
        if (found == json_.end()) throw UserError(fmt::format("{}: {} is missing", where_, key));
        return *found;
    }

    const Json& json_;
    std::string where_;
};

Json json_of(const ProfileFingerprint& fingerprint) {
    return {{"model", fingerprint.model},
            {"tp", fingerprint.tp},
            {"pp", fingerprint.pp},
            {"cp", fingerprint.cp},
            {"dtype", name(fingerprint.dtype)},
            {"micro_batch_tokens", fingerprint.micro_batch_tokens},
            {"threads", fingerprint.threads},
            {"links", fingerprint.links},
            {"library_version", fingerprint.library_version}};
}

ProfileFingerprint fingerprint_from(const Reader& reader) {
    return {.model = reader.get<std::string>("model"),
            .tp = reader.get<std::int32_t>("tp"),
            .pp = reader.get<std::int32_t>("pp"),
            .cp = reader.get<std::int32_t>("cp"),
            .dtype = dtype_from_name(reader.get<std::string>("dtype")),
            .micro_batch_tokens = reader.get<std::int64_t>("micro_batch_tokens"),
            .threads = reader.get<std::int32_t>("threads"),
            .links = reader.get<std::string>("links"),
            .library_version = reader.get<std::string>("library_version")};
}

Json json_of(const OpClass& op_class) {
    return {{"family", name(op_class.family)}, {"resource", name(op_class.resource)}};
}

OpClass class_from(const Reader& reader) {
    return {reader.named("family", op_family_from_name), reader.named("resource", resource_from_name)};
}

}  // namespace

std::string to_json(const OpProfile& profile) {
    Json ops = Json::array(), slowdowns = Json::array();
    for (const auto& [key, timing] : profile.ops)
        ops.push_back({{"kind", name(key.kind)},
                       {"resource", name(key.resource)},
                       {"shapes", key.shapes},
                       {"median_seconds", timing.median_seconds},
                       {"quartile_range_seconds", timing.quartile_range_seconds},
                       {"samples", timing.samples}});
    for (const auto& pair : profile.slowdowns)
        slowdowns.push_back({{"first", json_of(pair.first)},
                             {"second", json_of(pair.second)},
                             {"first_slowdown", pair.first_slowdown},
                             {"second_slowdown", pair.second_slowdown},
                             {"samples", pair.samples}});
    const Json json{{"profile_format", kFormat},
                    {"fingerprint", json_of(profile.fingerprint)},
                    {"provenance",
                     {{"host", profile.provenance.host},
                      {"date", profile.provenance.date},
                      {"ranks", profile.provenance.ranks}}},
                    {"ops", ops},
                    {"slowdowns", slowdowns}};
    return json.dump(1) + "\n";
}

OpProfile op_profile_from_json(const std::string& text, const std::string& where) {
    const Json json = Json::parse(text, nullptr, false);
    const Reader reader(json, "[program] " + where);
    if (const auto format = reader.get<int>("profile_format"); format != kFormat)
        throw UserError(fmt::format("[program] {}: profile_format {} is unknown; this version reads {}",
                                    where, format, kFormat));
    const Reader provenance = reader.object("provenance");
    OpProfile profile{.fingerprint = fingerprint_from(reader.object("fingerprint")),
                      .provenance = {provenance.get<std::string>("host"), provenance.get<std::string>("date"),
                                     provenance.get<std::int32_t>("ranks")},
                      .ops = {},
                      .slowdowns = {}};
    for (const Reader& op : reader.list("ops")) {
        const OpKey key{op.named("kind", op_kind_from_name), op.named("resource", resource_from_name),
                        op.get<std::string>("shapes")};
        const auto seconds = op.get<double>("median_seconds");
        if (!(seconds >= 0))
            throw UserError(fmt::format("[program] {}: {} takes {} seconds", where, name(key.kind), seconds));
        profile.ops[key] = {seconds, op.get<double>("quartile_range_seconds"),
                            op.get<std::int32_t>("samples")};
    }
    for (const Reader& pair : reader.list("slowdowns"))
        profile.slowdowns.push_back({class_from(pair.object("first")), class_from(pair.object("second")),
                                     pair.positive("first_slowdown"), pair.positive("second_slowdown"),
                                     pair.get<std::int32_t>("samples")});
    return profile;
}

}  // namespace atl
