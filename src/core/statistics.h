// Middle values of a few measurements.
#pragma once

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace atl {

inline double median(std::vector<double> values) {
    ATOLL_CHECK(!values.empty());
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace atl
