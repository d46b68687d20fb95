// What each codec would cost: the bytes of a round from its formula, the loss from what has been published about it.
//
// Pure; any thread. Source of the penalties: 8 bits and more lose nothing that was measured; 4 bits 0 to 0.01 nats
// (arXiv 2501.18512), top-k with error feedback 0.005 to 0.015 (arXiv 2508.15706); sign is given twice as much.
#pragma once

#include <vector>

#include "outer/tuner.h"

namespace atl {

// Bytes that one of `sites` alike sites sends, and receives, in a round; zstd and headers apart.
double round_bytes(std::string_view codec, double elements, std::int64_t sites);
std::vector<CodecChoice> codec_choices(double elements, std::int64_t sites);
// The elements of a model whose round sends so many bytes in fp32.
double elements_of(double raw_bytes, std::int64_t sites, std::string_view codec);

}  // namespace atl
