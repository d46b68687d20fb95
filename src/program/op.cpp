#include "program/op.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace atl {
namespace {

struct KindFacts {
    OpKind kind;
    std::string_view name;
    OpAttributes attributes;
    OpSignature signature;
    bool in_place = false;
};

constexpr int kAnyNumber = 1'000'000;

const std::vector<KindFacts>& facts() {
    const NoAttributes none;
    const AccumulateAttributes accumulate;
    const NormAttributes norm;
    const HeadAttributes heads;
    const CollectiveAttributes group;
    using enum OpKind;
    static const std::vector<KindFacts> table = {
        {embedding, "embedding", RowAttributes{}, {2, 4, 1, 1}},
        {embedding_backward, "embedding_backward", accumulate, {2, 2, 1, 1}},
        {rms_norm, "rms_norm", norm, {2, 2, 2, 2}},
        {add_rms_norm, "add_rms_norm", norm, {3, 3, 3, 3}},
        {rms_norm_backward, "rms_norm_backward", accumulate, {4, 5, 2, 2}},
        {layer_norm, "layer_norm", norm, {3, 3, 3, 3}},
        {add_layer_norm, "add_layer_norm", norm, {4, 4, 4, 4}},
        {layer_norm_backward, "layer_norm_backward", accumulate, {5, 6, 3, 3}},
        {linear, "linear", none, {2, 3, 1, 1}},
        {linear_backward_input, "linear_backward_input", none, {2, 2, 1, 1}},
        {linear_backward_weight, "linear_backward_weight", accumulate, {2, 2, 1, 2}},
        {rope, "rope", heads, {3, 3, 1, 1}, true},
        {rope_backward, "rope_backward", heads, {3, 3, 1, 1}, true},
        {attention, "attention", heads, {2, 2, 2, 2}},
        {attention_backward, "attention_backward", heads, {5, 5, 1, 1}},
        {swiglu, "swiglu", none, {1, 1, 1, 1}},
        {swiglu_backward, "swiglu_backward", none, {2, 2, 1, 1}},
        {gelu, "gelu", none, {1, 1, 1, 1}},
        {gelu_backward, "gelu_backward", none, {2, 2, 1, 1}},
        {add, "add", none, {2, 2, 1, 1}, true},
        {cross_entropy, "cross_entropy", none, {2, 2, 1, 2}, true},
        {logits_max, "logits_max", none, {1, 1, 1, 1}},
        {logits_sum, "logits_sum", RowAttributes{}, {3, 3, 1, 1}},
        {cross_entropy_parallel, "cross_entropy_parallel", RowAttributes{}, {4, 4, 1, 2}, true},
        {square_sum, "square_sum", none, {1, kAnyNumber, 1, 1}},
        {adamw, "adamw", AdamwAttributes{}, {6, 6, 3, 3}, true},
        {sgd, "sgd", SgdAttributes{}, {4, 4, 1, 1}, true},
        {muon, "muon", MuonAttributes{}, {5, 5, 2, 2}, true},
        {all_reduce, "all_reduce", group, {1, 1, 1, 1}, true},
        {all_reduce_max, "all_reduce_max", group, {1, 1, 1, 1}, true},
        {all_gather, "all_gather", group, {1, 1, 1, 1}, true},
        {reduce_scatter, "reduce_scatter", group, {1, 1, 1, 1}},
        {broadcast, "broadcast", group, {1, 1, 1, 1}, true},
        {send, "send", PointToPointAttributes{}, {1, 1, 0, 0}},
        {receive, "receive", PointToPointAttributes{}, {0, 0, 1, 1}},
    };
    return table;
}

const KindFacts& facts(OpKind kind) {
    const auto index = static_cast<std::size_t>(kind);
    ATOLL_CHECK_LT(index, facts().size());
    const auto& entry = facts()[index];
    ATOLL_CHECK(entry.kind == kind, "the table of kinds is out of order at {}", entry.name);
    return entry;
}

constexpr std::array<std::string_view, kResources> kResourceNames = {
    "compute", "link_intra", "link_inter", "copy", "host", "link_wan", "send", "receive"};
constexpr std::array<std::string_view, 6> kRoleNames = {"parameter", "gradient",   "state",
                                                        "input",     "activation", "output"};
constexpr std::array<std::string_view, 2> kSpaceNames = {"device", "host"};

template <class Enum, std::size_t n>
std::optional<Enum> enum_from_name(const std::array<std::string_view, n>& names, std::string_view text) {
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name(OpKind kind) {
    return facts(kind).name;
}

std::string_view name(Resource resource) {
    return kResourceNames.at(static_cast<std::size_t>(resource));
}

std::string_view name(Role role) {
    return kRoleNames.at(static_cast<std::size_t>(role));
}

std::string_view name(Space space) {
    return kSpaceNames.at(static_cast<std::size_t>(space));
}

std::optional<OpKind> op_kind_from_name(std::string_view text) {
    const auto found = std::ranges::find(facts(), text, &KindFacts::name);
    if (found == facts().end()) return std::nullopt;
    return found->kind;
}

std::optional<Resource> resource_from_name(std::string_view text) {
    return enum_from_name<Resource>(kResourceNames, text);
}

std::optional<Role> role_from_name(std::string_view text) {
    return enum_from_name<Role>(kRoleNames, text);
}

std::optional<Space> space_from_name(std::string_view text) {
    return enum_from_name<Space>(kSpaceNames, text);
}

OpAttributes default_attributes(OpKind kind) {
    return facts(kind).attributes;
}

OpSignature signature(OpKind kind) {
    return facts(kind).signature;
}

bool works_in_place(OpKind kind) {
    return facts(kind).in_place;
}

bool is_collective(OpKind kind) {
    return std::holds_alternative<CollectiveAttributes>(facts(kind).attributes);
}

bool is_point_to_point(OpKind kind) {
    return std::holds_alternative<PointToPointAttributes>(facts(kind).attributes);
}

}  // namespace atl
