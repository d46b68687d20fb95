// How much memory the forwards of a step keep for their backwards. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace atl {

// One layer's activations of one micro-batch: what is written before its backward begins and what its backward touches. Of
// the layer with least, as all are alike but where stages end, and of the rank with most; 0 without layers.
std::int64_t saved_layer_bytes(const std::vector<Program>& programs);

}  // namespace atl
