#include "layout/layout.h"

#include "core/check.h"

namespace atl {

TensorLayout replicated(const Shape& shape, std::int32_t ranks) {
    return {shape, std::vector<std::vector<Box>>(static_cast<std::size_t>(ranks), {Box::whole(shape)})};
}

TensorLayout split(const Shape& shape, std::size_t dimension, std::int32_t ranks) {
    ATOLL_CHECK_LT(dimension, shape.size());
    ATOLL_CHECK_LT(0, ranks);
    TensorLayout layout{shape, {}};
    const std::int64_t extent = shape[dimension];
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const Range range{extent * rank / ranks, extent * (rank + 1) / ranks};
        auto& boxes = layout.rank_boxes.emplace_back();
        if (range.size() == 0) continue;
        boxes.push_back(Box::whole(shape));
        boxes.back().ranges[dimension] = range;
    }
    return layout;
}

}  // namespace atl
