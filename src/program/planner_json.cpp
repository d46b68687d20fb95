// The text forms of profiles and plans: JSON objects with the fields of the structs under their own names.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "program/op_profile.h"
#include "program/strand_plan.h"

namespace atl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProfileFormat = 2;
constexpr int kPlanFormat = 1;

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
    const std::string& where() const { return where_; }
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

// "F0-3 B0 F4": runs of ops of the first and of the second strand.
std::string print_order(const PlannedPair& pair) {
    std::string text;
    for (std::size_t i = 0; i < pair.order.size();) {
        std::size_t end = i + 1;
        const bool is_first = pair.order[i] < pair.first_ops;
        while (end < pair.order.size() && pair.order[end] == pair.order[end - 1] + 1 &&
               (pair.order[end] < pair.first_ops) == is_first)
            ++end;
        const auto offset = is_first ? 0 : pair.first_ops;
        text += fmt::format("{}{}{}", i > 0 ? " " : "", is_first ? 'F' : 'B', pair.order[i] - offset);
        if (end > i + 1) text += fmt::format("-{}", pair.order[end - 1] - offset);
        i = end;
    }
    return text;
}

void parse_order(const std::string& text, const std::string& where, PlannedPair& pair) {
    std::vector<bool> seen(static_cast<std::size_t>(pair.first_ops + pair.second_ops), false);
    const auto fail = [&](std::size_t at) -> UserError {
        return UserError(
            fmt::format("{}: order, character {}: not each op once, as in \"F0-3 B0\"", where, at + 1));
    };
    const char* next = text.data();
    const char* end = next + text.size();
    while (next < end) {
        const auto at = static_cast<std::size_t>(next - text.data());
        const bool is_first = *next == 'F';
        if (!is_first && *next != 'B') throw fail(at);
        std::int32_t begin = -1, last = -1;
        next = std::from_chars(next + 1, end, begin).ptr;
        last = begin;
        if (next < end && *next == '-') next = std::from_chars(next + 1, end, last).ptr;
        const auto count = is_first ? pair.first_ops : pair.second_ops;
        if (begin < 0 || last < begin || last >= count || (next < end && *next != ' ')) throw fail(at);
        for (auto op = begin; op <= last; ++op) {
            const auto number = is_first ? op : pair.first_ops + op;
            if (seen[static_cast<std::size_t>(number)]) throw fail(at);
            seen[static_cast<std::size_t>(number)] = true;
            pair.order.push_back(number);
        }
        if (next < end) ++next;
    }
    if (pair.order.size() != seen.size()) throw fail(text.size());
}

Json json_of(const Work& work) {
    return {{"kind", std::string(1, print(work).front())}, {"stage", work.stage}};
}

Work work_from(const Reader& reader) {
    const auto kind = reader.get<std::string>("kind");
    const auto found = std::string("FBIW").find(kind.size() == 1 ? kind.front() : ' ');
    if (found == std::string::npos) throw UserError(reader.where() + ": kind is none of F, B, I and W");
    return {static_cast<WorkKind>(found), reader.get<std::int32_t>("stage"), 0};
}

Json json_of(const PlannedPair& pair) {
    return {{"first", json_of(pair.first)},
            {"second", json_of(pair.second)},
            {"first_ops", pair.first_ops},
            {"second_ops", pair.second_ops},
            {"seconds", pair.seconds},
            {"serial_seconds", pair.serial_seconds},
            {"busiest_seconds", pair.busiest_seconds},
            {"peak_bytes", pair.peak_bytes},
            {"most_bytes", pair.most_bytes},
            {"order", print_order(pair)}};
}

PlannedPair pair_from(const Reader& reader) {
    PlannedPair pair{.first = work_from(reader.object("first")),
                     .second = work_from(reader.object("second")),
                     .first_ops = reader.get<std::int32_t>("first_ops"),
                     .second_ops = reader.get<std::int32_t>("second_ops"),
                     .order = {},
                     .seconds = reader.get<double>("seconds"),
                     .serial_seconds = reader.get<double>("serial_seconds"),
                     .busiest_seconds = reader.get<double>("busiest_seconds"),
                     .peak_bytes = reader.get<std::int64_t>("peak_bytes"),
                     .most_bytes = reader.get<std::int64_t>("most_bytes")};
    constexpr std::int32_t kMostOps = 10'000'000;
    if (pair.first_ops < 0 || pair.second_ops < 0 || pair.first_ops > kMostOps || pair.second_ops > kMostOps)
        throw UserError(reader.where() + ": first_ops and second_ops are no numbers of ops");
    parse_order(reader.get<std::string>("order"), reader.where(), pair);
    return pair;
}

}  // namespace

std::string to_json(const OpProfile& profile) {
    Json ops = Json::array(), slowdowns = Json::array();
    for (const auto& [key, timing] : profile.ops)
        ops.push_back({{"kind", name(key.kind)},
                       {"resource", name(key.resource)},
                       {"shapes", key.shapes},
                       {"mean_seconds", timing.mean_seconds},
                       {"median_seconds", timing.median_seconds},
                       {"quartile_range_seconds", timing.quartile_range_seconds},
                       {"samples", timing.samples}});
    for (const auto& pair : profile.slowdowns)
        slowdowns.push_back({{"first", json_of(pair.first)},
                             {"second", json_of(pair.second)},
                             {"first_slowdown", pair.first_slowdown},
                             {"second_slowdown", pair.second_slowdown},
                             {"samples", pair.samples}});
    const Json json{{"profile_format", kProfileFormat},
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
    if (const auto format = reader.get<int>("profile_format"); format != kProfileFormat)
        throw UserError(fmt::format("[program] {}: profile_format {} is unknown; this version reads {}",
                                    where, format, kProfileFormat));
    const Reader provenance = reader.object("provenance");
    OpProfile profile{.fingerprint = fingerprint_from(reader.object("fingerprint")),
                      .provenance = {provenance.get<std::string>("host"), provenance.get<std::string>("date"),
                                     provenance.get<std::int32_t>("ranks")},
                      .ops = {},
                      .slowdowns = {}};
    for (const Reader& op : reader.list("ops")) {
        const OpKey key{op.named("kind", op_kind_from_name), op.named("resource", resource_from_name),
                        op.get<std::string>("shapes")};
        const auto seconds = op.get<double>("mean_seconds");
        if (!(seconds >= 0))
            throw UserError(fmt::format("[program] {}: {} takes {} seconds", where, name(key.kind), seconds));
        profile.ops[key] = {seconds, op.get<double>("median_seconds"),
                            op.get<double>("quartile_range_seconds"), op.get<std::int32_t>("samples")};
    }
    for (const Reader& pair : reader.list("slowdowns"))
        profile.slowdowns.push_back({class_from(pair.object("first")), class_from(pair.object("second")),
                                     pair.positive("first_slowdown"), pair.positive("second_slowdown"),
                                     pair.get<std::int32_t>("samples")});
    return profile;
}

std::string to_json(const StrandPlan& plan) {
    Json pairs = Json::array();
    for (const auto& pair : plan.pairs) pairs.push_back(json_of(pair));
    const auto& predicted = plan.predicted;
    const Json json{{"plan_format", kPlanFormat},
                    {"hash", plan.hash()},
                    {"interleaves", plan.interleaves},
                    {"halves_micro_batches", plan.halves_micro_batches},
                    {"reason", plan.reason},
                    {"costs", plan.costs},
                    {"fingerprint", json_of(plan.fingerprint)},
                    {"predicted",
                     {{"serial_seconds", predicted.serial_seconds},
                      {"barrier_seconds", predicted.barrier_seconds},
                      {"event_seconds", predicted.event_seconds},
                      {"compute_seconds", predicted.compute_seconds},
                      {"communication_seconds", predicted.communication_seconds}}},
                    {"step_seconds", plan.step_seconds},
                    {"pairs", pairs}};
    return json.dump(1) + "\n";
}

StrandPlan strand_plan_from_json(const std::string& text, const std::string& where) {
    const Json json = Json::parse(text, nullptr, false);
    const Reader reader(json, "[plan] " + where);
    if (const auto format = reader.get<int>("plan_format"); format != kPlanFormat)
        throw UserError(fmt::format("[plan] {}: plan_format {} is unknown; this version reads {}", where,
                                    format, kPlanFormat));
    const Reader predicted = reader.object("predicted");
    StrandPlan plan{.interleaves = reader.get<bool>("interleaves"),
                    .halves_micro_batches = reader.get<bool>("halves_micro_batches"),
                    .reason = reader.get<std::string>("reason"),
                    .costs = reader.get<std::string>("costs"),
                    .fingerprint = fingerprint_from(reader.object("fingerprint")),
                    .predicted = {.serial_seconds = predicted.get<double>("serial_seconds"),
                                  .barrier_seconds = predicted.get<double>("barrier_seconds"),
                                  .event_seconds = predicted.get<double>("event_seconds"),
                                  .compute_seconds = predicted.get<double>("compute_seconds"),
                                  .communication_seconds = predicted.get<double>("communication_seconds")},
                    .step_seconds = reader.get<double>("step_seconds"),
                    .pairs = {}};
    for (const Reader& pair : reader.list("pairs")) plan.pairs.push_back(pair_from(pair));
    if (const auto hash = reader.get<std::string>("hash"); hash != plan.hash())
        throw UserError(
            fmt::format("[plan] {}: hash {} is not that of the plan, {}", where, hash, plan.hash()));
    return plan;
}

}  // namespace atl
