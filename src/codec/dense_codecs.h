// The codecs that give every element its own code. codec.h is the contract; FORMAT.md gives the bodies.
//
//   identity  fp32 as it is: 4 bytes an element
//   fp16      IEEE 754 binary16, 2 bytes; refuses what rounds beyond 65504
//   bf16      the upper half of fp32, 2 bytes
#pragma once

#include <memory>

#include "codec/codec.h"

namespace atl {

std::vector<std::unique_ptr<const Codec>> make_dense_codecs(kernels::InstructionSet set);  // in this order

}  // namespace atl
