// The codecs that give a block of values one scale and each value a code of one, four or eight bits. codec.h is the
// contract, kernels/block_code.h the arithmetic, FORMAT.md the bodies and the bounds of what is lost.
#pragma once

#include <memory>

#include "codec/codec.h"

namespace atl {

// int8, int4, e3m0, sign
std::vector<std::unique_ptr<const Codec>> make_block_codecs(kernels::InstructionSet set);

}  // namespace atl
