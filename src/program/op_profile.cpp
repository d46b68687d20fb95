#include "program/op_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/check.h"
#include "core/error.h"
#include "core/statistics.h"

namespace atl {
namespace {

constexpr std::size_t kValuesNamed =
    6;  // an op on more values, such as a norm of all gradients, gives their sum

void append_shapes(std::string& text, const Program& program, const std::vector<ValueId>& ids) {
    if (ids.size() > kValuesNamed) {
        std::int64_t elements = 0;
        for (const auto id : ids) elements += element_count(program.value(id).shape);
        text += fmt::format(" {} elements in {} values", elements, ids.size());
        return;
    }
    for (const auto id : ids) text += fmt::format(" [{}]", fmt::join(program.value(id).shape, ","));
}

std::string link_shapes(const Program& program, const Op& op) {
    std::string text = fmt::format("{} bytes", op.bytes);
    const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes);
    if (collective != nullptr) {
        const auto group = program.groups.find(collective->group);
        ATOLL_CHECK(group != program.groups.end(), "no group is named {}", collective->group);
        text += fmt::format(" group {}", group->second.size());
    }
    return text;
}

}  // namespace

OpKey key_of(const Program& program, const Op& op) {
    if (is_collective(op.kind) || is_point_to_point(op.kind))
        return {op.kind, op.resource, link_shapes(program, op)};
    const ValueId first = op.writes.empty() ? op.reads.front() : op.writes.front();
    std::string text(name(program.value(first).dtype));
    append_shapes(text, program, op.reads);
    text += " >";
    append_shapes(text, program, op.writes);
    if (const auto* heads = std::get_if<HeadAttributes>(&op.attributes))
        text += fmt::format(" heads {}/{} of {}", heads->heads, heads->kv_heads, heads->head_width);
    if (const auto* accumulate = std::get_if<AccumulateAttributes>(&op.attributes))
        text += accumulate->accumulate ? " add" : " set";
    return {op.kind, op.resource, std::move(text)};
}

OpTiming timing_of(const std::vector<std::vector<double>>& steps) {
    std::vector<double> means, seconds;
    for (const auto& step : steps) {
        if (step.empty()) continue;
        means.push_back(std::accumulate(step.begin(), step.end(), 0.0) / static_cast<double>(step.size()));
        seconds.insert(seconds.end(), step.begin(), step.end());
    }
    ATOLL_CHECK(!seconds.empty(), "an op without a sample");
    std::ranges::sort(seconds);
    const auto quantile = [&](double share) {
        return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1) + 0.5)];
    };
    return {median(std::move(means)), median(seconds), quantile(0.75) - quantile(0.25),
            static_cast<std::int32_t>(seconds.size())};
}

std::string difference(const ProfileFingerprint& here, const ProfileFingerprint& profile) {
    std::string text;
    const auto compare = [&](std::string_view what, const auto& mine, const auto& theirs) {
        if constexpr (requires { mine.empty(); })
            if (mine.empty() || theirs.empty()) return;
        if (text.empty() && mine != theirs)
            text = fmt::format("{} is {}, the profile's {}", what, mine, theirs);
    };
    compare("model", here.model, profile.model);
    compare("tp", here.tp, profile.tp);
    compare("pp", here.pp, profile.pp);
    compare("cp", here.cp, profile.cp);
    compare("dtype", name(here.dtype), name(profile.dtype));
    compare("micro_batch_tokens", here.micro_batch_tokens, profile.micro_batch_tokens);
    if (here.threads > 0 && profile.threads > 0) compare("threads", here.threads, profile.threads);
    compare("links", here.links, profile.links);
    compare("library_version", here.library_version, profile.library_version);
    return text;
}

std::vector<double> op_seconds(const Program& program, const OpProfile& profile) {
    std::vector<double> seconds;
    std::set<std::string> missing;
    for (const auto& op : program.ops) {
        const auto key = key_of(program, op);
        const auto found = profile.ops.find(key);
        if (found == profile.ops.end())
            missing.insert(fmt::format("[program] the profile has no time of {} ({}, {})", name(op.kind),
                                       name(op.resource), key.shapes));
        seconds.push_back(found == profile.ops.end() ? 0 : found->second.mean_seconds);
    }
    if (!missing.empty()) throw UserError(std::vector(missing.begin(), missing.end()));
    return seconds;
}

}  // namespace atl
