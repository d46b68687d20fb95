// The fields of each kind of attributes, by name: what the text form prints and parses.
//
// visit(name, field) is called once per field, in a fixed order. One template serves const and mutable attributes.
#pragma once

#include "program/op.h"

namespace atl {

template <class Attributes, class Visit>
void visit_fields(Attributes& attributes, Visit&& visit) {
    using Plain = std::remove_const_t<Attributes>;
    if constexpr (std::is_same_v<Plain, AccumulateAttributes>) {
        visit("accumulate", attributes.accumulate);
        visit("first_row", attributes.first_row);
    } else if constexpr (std::is_same_v<Plain, NormAttributes>) {
        visit("epsilon", attributes.epsilon);
    } else if constexpr (std::is_same_v<Plain, HeadAttributes>) {
        visit("heads", attributes.heads);
        visit("kv_heads", attributes.kv_heads);
        visit("head_width", attributes.head_width);
    } else if constexpr (std::is_same_v<Plain, AdamwAttributes>) {
        visit("beta1", attributes.beta1);
        visit("beta2", attributes.beta2);
        visit("epsilon", attributes.epsilon);
        visit("weight_decay", attributes.weight_decay);
        visit("grad_clip", attributes.grad_clip);
    } else if constexpr (std::is_same_v<Plain, SgdAttributes>) {
        visit("weight_decay", attributes.weight_decay);
        visit("grad_clip", attributes.grad_clip);
    } else if constexpr (std::is_same_v<Plain, MuonAttributes>) {
        visit("momentum", attributes.momentum);
        visit("weight_decay", attributes.weight_decay);
        visit("grad_clip", attributes.grad_clip);
    } else if constexpr (std::is_same_v<Plain, CollectiveAttributes>) {
        visit("group", attributes.group);
        visit("sequence", attributes.sequence);
    } else if constexpr (std::is_same_v<Plain, RowAttributes>) {
        visit("first_row", attributes.first_row);
        visit("all_rows", attributes.all_rows);
    } else if constexpr (std::is_same_v<Plain, PointToPointAttributes>) {
        visit("peer", attributes.peer);
        visit("sequence", attributes.sequence);
    } else {
        static_assert(std::is_same_v<Plain, NoAttributes>);
    }
}

}  // namespace atl
