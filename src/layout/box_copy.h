// Copying the common part of two boxes between their row-major buffers, and keeping track of what is missing.
//
// Cost: one pass over the common elements; contiguous along the last dimension.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/check.h"
#include "layout/box.h"

namespace atl {

// Removes `box` from the disjoint boxes in `missing`; false when none of them shares an element with it.
bool cut_away(std::vector<Box>& missing, const Box& box);

// Index of the first element of `inner` in the row-major buffer of `outer`, and elements per step of each
// dimension there.
std::int64_t first_index(const Box& outer, const Box& inner);
std::vector<std::int64_t> strides(const Box& box);

// to[i] ← from[i] for every logical index i in `common`, which both boxes contain.
template <class From, class To>
void copy_box(std::span<const From> from, const Box& from_box, std::span<To> to, const Box& to_box,
              const Box& common) {
    ATOLL_CHECK_EQ(from_box.elements(), static_cast<std::int64_t>(from.size()));
    ATOLL_CHECK_EQ(to_box.elements(), static_cast<std::int64_t>(to.size()));
    const Shape shape = common.shape();
    const std::size_t dimensions = shape.size();
    const std::int64_t row = dimensions == 0 ? 1 : shape.back();
    const auto from_strides = strides(from_box), to_strides = strides(to_box);
    std::int64_t source = first_index(from_box, common), target = first_index(to_box, common);
    std::vector<std::int64_t> index(dimensions, 0);
    for (std::int64_t rows = row == 0 ? 0 : common.elements() / row; rows > 0; --rows) {
        for (std::int64_t i = 0; i < row; ++i)
            to[static_cast<std::size_t>(target + i)] =
                static_cast<To>(from[static_cast<std::size_t>(source + i)]);
        for (std::size_t d = dimensions == 0 ? 0 : dimensions - 1; d-- > 0;) {
            source += from_strides[d];
            target += to_strides[d];
            if (++index[d] < shape[d]) break;
            index[d] = 0;
            source -= shape[d] * from_strides[d];
            target -= shape[d] * to_strides[d];
        }
    }
}

}  // namespace atl
