#include "layout/box_copy.h"

namespace atl {

bool cut_away(std::vector<Box>& missing, const Box& box) {
    std::vector<Box> left;
    bool shared = false;
    for (Box rest : missing) {
        const auto common = intersect(rest, box);
        if (!common) {
            left.push_back(rest);
            continue;
        }
        shared = true;
        // Slabs before and after the common part, dimension by dimension; `rest` shrinks to it.
        for (std::size_t d = 0; d < rest.ranges.size(); ++d) {
            const Range inner = common->ranges[d], outer = rest.ranges[d];
            if (outer.begin < inner.begin) left.push_back(rest), left.back().ranges[d].end = inner.begin;
            if (inner.end < outer.end) left.push_back(rest), left.back().ranges[d].begin = inner.end;
            rest.ranges[d] = inner;
        }
    }
    missing = std::move(left);
    return shared;
}

std::vector<std::int64_t> strides(const Box& box) {
    std::vector<std::int64_t> result(box.ranges.size(), 1);
    for (std::size_t d = result.size(); d-- > 1;) result[d - 1] = result[d] * box.ranges[d].size();
    return result;
}

std::int64_t first_index(const Box& outer, const Box& inner) {
    const auto steps = strides(outer);
    std::int64_t index = 0;
    for (std::size_t d = 0; d < steps.size(); ++d)
        index += steps[d] * (inner.ranges[d].begin - outer.ranges[d].begin);
    return index;
}

}  // namespace atl
