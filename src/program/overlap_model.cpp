#include "program/overlap_model.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, kOpFamilies> kFamilyNames = {
    "matmul", "attention", "elementwise", "optimizer", "gather", "reduce", "message"};

}  // namespace

std::string_view name(OpFamily family) {
    return kFamilyNames.at(static_cast<std::size_t>(family));
}

std::optional<OpFamily> op_family_from_name(std::string_view text) {
    const auto found = std::ranges::find(kFamilyNames, text);
    if (found == kFamilyNames.end()) return std::nullopt;
    return static_cast<OpFamily>(found - kFamilyNames.begin());
}

OpFamily family_of(OpKind kind) {
    switch (kind) {
        case OpKind::linear:
        case OpKind::linear_backward_input:
        case OpKind::linear_backward_weight:
            return OpFamily::matmul;
        case OpKind::attention:
        case OpKind::attention_backward:
            return OpFamily::attention;
        case OpKind::square_sum:
        case OpKind::adamw:
        case OpKind::sgd:
        case OpKind::muon:
            return OpFamily::optimizer;
        case OpKind::all_gather:
        case OpKind::broadcast:
            return OpFamily::gather;
        case OpKind::all_reduce:
        case OpKind::all_reduce_max:
        case OpKind::reduce_scatter:
            return OpFamily::reduce;
        case OpKind::send:
        case OpKind::receive:
            return OpFamily::message;
        default:
            return OpFamily::elementwise;
    }
}

OpClass class_of(const Op& op) {
    return {family_of(op.kind), op.resource};
}

OverlapModel::OverlapModel() : slowdowns_(kClasses * kClasses, 1.0) {}

OverlapModel::OverlapModel(const std::vector<PairSlowdown>& pairs) : OverlapModel() {
    for (const auto& pair : pairs) {
        ATOLL_CHECK(pair.first_slowdown > 0 && pair.second_slowdown > 0, "slowdowns {} and {}",
                    pair.first_slowdown, pair.second_slowdown);
        const double first = std::max(pair.first_slowdown, 1.0), second = std::max(pair.second_slowdown, 1.0);
        slowdowns_[index(pair.first) * kClasses + index(pair.second)] = first;
        slowdowns_[index(pair.second) * kClasses + index(pair.first)] = second;
        slows_nothing_ = slows_nothing_ && first == 1 && second == 1;
    }
}

}  // namespace atl
