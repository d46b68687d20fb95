// How fast each codec is under each instruction set this processor has, beside memcpy of the same run.
//
// Values N(0,1), one thread, chunk after chunk as the exchange goes over a fragment. The repetitions of all take turns,
// so that whatever else the machine does meets them alike; the fastest one says what is possible, the median what is
// usual. Threads: one caller. Memory: two fp32 copies of the elements and their bodies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"

namespace atl {

struct CodecSpeed {
    std::string instruction_set;  // empty for memcpy
    std::string codec;            // or "memcpy"
    std::string operation;        // "encode", "decode_add" or "copy"
    double median_seconds = 0;    // for all elements
    double minimum_seconds = 0;
};

// The first is memcpy. `elements` and `repetitions` at least 1.
std::vector<CodecSpeed> measure_codecs(std::int64_t elements, int repetitions, const Clock& clock);

}  // namespace atl
