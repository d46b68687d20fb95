// Boxes: n-dimensional index ranges of a logical tensor. All that moves between ranks or layouts is planned
// by intersecting boxes, never by "degree must divide" arithmetic.
//
// Units: elements. Cost: O(dimensions) per operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace atl {

using Shape = std::vector<std::int64_t>;

std::int64_t element_count(const Shape& shape);

struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;  // one past the last
    std::int64_t size() const { return end - begin; }
    auto operator<=>(const Range&) const = default;
};

struct Box {
    std::vector<Range> ranges;  // one per dimension, outermost first

    static Box whole(const Shape& shape);
    Shape shape() const;
    std::int64_t elements() const;
    bool contains(const Box& other) const;
    auto operator<=>(const Box&) const = default;
};

std::optional<Box> intersect(const Box& a, const Box& b);  // nothing when they share no element
std::string to_string(const Box& box);                     // "[0:128,64:128]"

}  // namespace atl
