// The codec that keeps the largest values of each 4096. codec.h is the contract, kernels/top_k_code.h the arithmetic,
// FORMAT.md the body and the bound of what is lost.
#pragma once

#include <memory>

#include "codec/codec.h"

namespace atl {

// "top_k_KEPT": 1 to 4096 of each 4096 values.
std::unique_ptr<const Codec> make_top_k_codec(std::int64_t kept, kernels::InstructionSet set);

}  // namespace atl
