// Initial values: a pure function of (seed, tensor name, logical index), whatever the layout.
//
// fill_initial writes the elements of `box`, row-major, into a span of exactly box.elements() elements that the
// caller owns. Any thread. Values are made in fp64 and rounded once.
#pragma once

#include <span>
#include <vector>

#include "model/tensors.h"

namespace atl {

void fill_initial(const ModelShape& shape, const TensorSpec& tensor, std::uint64_t seed, const Box& box,
                  std::span<float> values);
void fill_initial(const ModelShape& shape, const TensorSpec& tensor, std::uint64_t seed, const Box& box,
                  std::span<double> values);

// The rotary table of op.h: [positions, head_width], cosines in the first half of a row and sines in the second,
// of the angle position · theta^(-2 i / head_width).
std::vector<double> rope_table(const ModelShape& shape, std::int64_t positions);

}  // namespace atl
