// Layout: which rank holds which boxes of which logical tensor. Boxes may overlap (replicas).
//
// Units: elements of the logical tensor. Pure data, owned by whoever made it; no threads, no errors but failed
// checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "layout/box.h"

namespace atl {

struct TensorLayout {
    Shape shape;                               // of the logical tensor
    std::vector<std::vector<Box>> rank_boxes;  // [rank]: the boxes it holds; none is fine

    bool operator==(const TensorLayout&) const = default;
};

using Layout = std::map<std::string, TensorLayout>;  // by logical tensor

// Every one of `ranks` ranks holds the whole tensor.
TensorLayout replicated(const Shape& shape, std::int32_t ranks);
// Rank r holds the r-th of `ranks` nearly equal ranges of `dimension`; sizes differ by at most one.
TensorLayout split(const Shape& shape, std::size_t dimension, std::int32_t ranks);

}  // namespace atl
