// Moments, quantisation and table look-up of the eight-bit code. The same bits under every instruction set.
#include "kernels/dispatch.h"
#include "kernels/fixed_lanes.h"
#include "kernels/int8_code_steps.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

void run(const CentredSums& op) {
    FixedLanes sums;
    FixedLanes squares;
    std::int64_t i = 0;
    for (; i + kFixedLanes <= op.count; i += kFixedLanes) {
        for (int lane = 0; lane < kFixedLanes; ++lane) {
            const double centred = static_cast<double>(op.values[i + lane]) - op.pivot;
            sums.lane[lane] += centred;
            squares.lane[lane] += centred * centred;
        }
    }
    for (int lane = 0; i < op.count; ++i, ++lane) {
        const double centred = static_cast<double>(op.values[i]) - op.pivot;
        sums.lane[lane] += centred;
        squares.lane[lane] += centred * centred;
    }
    *op.sum = sums.sum();
    *op.square_sum = squares.sum();
}

// Codes as 32-bit numbers; the space after `count` is written too, up to a whole vector.
void quantise(const float* values, std::int64_t count, float mean, float inverse_step, std::int32_t* codes) {
    typedef std::int32_t IntVector __attribute__((vector_size(kVectorBytes)));
    const Vec<float> least = broadcast(-128.0F);
    const Vec<float> most = broadcast(127.0F);
    const Vec<float> rounder =
        broadcast(12582912.0F);  // 1.5 · 2^23: adding it rounds to an integer, ties to even
    for_vectors<float>(count, [&](std::int64_t i, std::int64_t lanes) {
        Vec<float> scaled = (load_first(values + i, lanes) - mean) * inverse_step;
        scaled = scaled < least ? least : scaled;
        scaled = scaled > most ? most : scaled;
        const IntVector code = (IntVector)(scaled + rounder) - (IntVector)rounder + 128;
        store(reinterpret_cast<float*>(codes + i), (Vec<float>)code);
    });
}

// The sum and the number of the values of each bin, side by side so that one addition does both. Several tables
// take turns: neighbouring values often share a bin, and an addition to the same memory waits for the one before.
class BinSums {
  public:
    void add(const float* values, const std::int32_t* codes, std::int64_t count) {
        std::int64_t i = 0;
        for (; i + kTables <= count; i += kTables) {
#pragma GCC unroll 4
            for (int table = 0; table < kTables; ++table)
                add_one(values + i + table, codes[i + table], table);
        }
        for (; i < count; ++i) add_one(values + i, codes[i], 0);
    }

    float mean(int bin) const {
        const SumAndCount all = (bins_[0][bin] + bins_[1][bin]) + (bins_[2][bin] + bins_[3][bin]);
        return all[1] == 0 ? 0.0F : static_cast<float>(all[0] / all[1]);
    }

  private:
    typedef double SumAndCount __attribute__((vector_size(16)));
    static constexpr int kTables = 4;

    void add_one(const float* value, std::int32_t code, int table) {
        // The value in the lower half, 1 in the upper.
        bins_[table][code] += (SumAndCount)_mm_cvtss_sd(_mm_set1_pd(1.0), _mm_load_ss(value));
    }

    SumAndCount bins_[kTables][256] = {};
};

void run(const Int8Encode& op) {
    constexpr std::int64_t kPiece = 1024;  // stays in the cache between the passes
    std::int32_t codes[kPiece];
    BinSums bins;
    for (std::int64_t first = 0; first < op.count; first += kPiece) {
        const std::int64_t count = op.count - first < kPiece ? op.count - first : kPiece;
        quantise(op.values + first, count, op.mean, op.inverse_step, codes);
        bins.add(op.values + first, codes, count);
        for (std::int64_t i = 0; i < count; ++i) op.codes[first + i] = static_cast<std::uint8_t>(codes[i]);
    }
    for (int bin = 0; bin < 256; ++bin) op.codebook[bin] = bins.mean(bin);
}

void run(const Int8Lookup& op) {
    const std::uint8_t* __restrict codes = op.codes;
    const float* __restrict table = op.table;
    float* __restrict values = op.values;
    for (std::int64_t i = 0; i < op.count; ++i) values[i] = table[codes[i]];
}

void run(const Int8LookupAdd& op) {
    const std::uint8_t* __restrict codes = op.codes;
    const float* __restrict table = op.table;
    float* __restrict accumulator = op.accumulator;
    for (std::int64_t i = 0; i < op.count; ++i) accumulator[i] += table[codes[i]];
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const CentredSums& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Int8Encode& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Int8Lookup& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Int8LookupAdd& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
