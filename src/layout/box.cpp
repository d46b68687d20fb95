#include "layout/box.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"

namespace atl {

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const auto extent : shape) count *= extent;
    return count;
}

Box Box::whole(const Shape& shape) {
    Box box;
    for (const auto extent : shape) box.ranges.push_back({0, extent});
    return box;
}

Shape Box::shape() const {
    Shape shape;
    for (const auto& range : ranges) shape.push_back(range.size());
    return shape;
}

std::int64_t Box::elements() const {
    return element_count(shape());
}

bool Box::contains(const Box& other) const {
    return intersect(*this, other) == other;
}

std::optional<Box> intersect(const Box& a, const Box& b) {
    ATOLL_CHECK_EQ(a.ranges.size(), b.ranges.size());
    Box common;
    for (std::size_t i = 0; i < a.ranges.size(); ++i) {
        const Range range{std::max(a.ranges[i].begin, b.ranges[i].begin),
                          std::min(a.ranges[i].end, b.ranges[i].end)};
        if (range.size() <= 0) return std::nullopt;
        common.ranges.push_back(range);
    }
    return common;
}

std::string to_string(const Box& box) {
    std::string text = "[";
    for (const auto& range : box.ranges)
        text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", range.begin, range.end);
    return text + "]";
}

}  // namespace atl
