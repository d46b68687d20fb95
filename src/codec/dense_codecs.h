// The codecs that give every element its own code. codec.h is the contract; FORMAT.md gives the bodies.
#pragma once

#include "codec/codec.h"

namespace atl {

const Codec& identity_codec();  // fp32 as it is: 4 bytes an element
const Codec& fp16_codec();      // IEEE 754 binary16, 2 bytes; refuses what rounds beyond 65504
const Codec& bf16_codec();      // the upper half of fp32, 2 bytes
const Codec& int8_codec();      // 1 byte and a codebook of 1 KiB per chunk: kernels/int8_code.h

}  // namespace atl
