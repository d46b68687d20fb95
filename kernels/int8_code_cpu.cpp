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

constexpr std::int64_t kPiece = 1024;      // values worked off in the first-level cache
constexpr double kResidualUnit = 0x1p-24;  // of a step; a residual of half a step is 2^23 of them
constexpr std::int64_t kFlushPieces = 32;  // 2^15 values: their residuals stay below half of kOneValue
constexpr std::int64_t kOneValue = std::int64_t{1} << 40;

struct Piece {
    alignas(64) std::int32_t codes[kPiece + 16];  // what lies 4096 bytes apart looks alike to the processor
    std::int32_t residuals[kPiece];  // value less centre of its bin, in kResidualUnit; 0 where clipped
    bool clipped = false;            // anything was
};

// (value − mean) / step; the code is this, bounded, rounded to even, plus 128.
inline float scaled_value(const Int8Encode& op, float value) {
    return (value - op.mean) * op.inverse_step;
}

// value, but at least `least` and at most `most`; a NaN stays.
inline Vec<float> within(Vec<float> value, Vec<float> least, Vec<float> most) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    // The same comparisons in one instruction each, where the compiler would add a slow blend.
    return _mm256_min_ps(most, _mm256_max_ps(least, value));
#else
    const Vec<float> raised = value < least ? least : value;
    return raised > most ? most : raised;
#endif
}

void quantise(const Int8Encode& op, std::int64_t first, std::int64_t count, Piece& piece) {
    typedef std::int32_t IntVector __attribute__((vector_size(kVectorBytes)));
    const Vec<float> least = broadcast(-128.0F);
    const Vec<float> most = broadcast(127.0F);
    const Vec<float> rounder =
        broadcast(12582912.0F);  // 1.5 · 2^23: adding it rounds to an integer, ties to even
    IntVector outside{};
    for_vectors<float>(count, [&](std::int64_t i, std::int64_t lanes) {
        const Vec<float> scaled =
            (load_first(op.values + first + i, lanes, op.mean) - op.mean) * op.inverse_step;
        const Vec<float> bounded = within(scaled, least, most);
        outside |= bounded != scaled;
        const Vec<float> shifted = bounded + rounder;
        // Within 0…255 also for a NaN that the caller's moments don't show.
        const IntVector code = ((IntVector)shifted + 128) & 255;  // the rounder's lowest byte is 0
        const Vec<float> residual = (bounded - (shifted - rounder)) * static_cast<float>(1 / kResidualUnit);
        store(reinterpret_cast<float*>(piece.codes + i), (Vec<float>)code);
        store(reinterpret_cast<float*>(piece.residuals + i),
              (Vec<float>)__builtin_convertvector(residual, IntVector));
    });
    std::int32_t any = 0;
    for (int lane = 0; lane < kLanes<float>; ++lane) any |= outside[lane];
    piece.clipped = any != 0;
}

void narrow(const std::int32_t* __restrict from, std::int64_t count, std::uint8_t* __restrict to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(from[i]);
}

// Number and mean residual of the values of each bin. One 64-bit integer per bin holds both, so that each value
// costs one addition: the number in units of kOneValue, the residuals below. Several tables take turns, because
// neighbouring values often share a bin and an addition to the same memory waits for the one before.
class BinSums {
  public:
    void add(const Piece& piece, std::int64_t count) {
        std::int64_t i = 0;
        for (; i + kTables <= count; i += kTables) {
#pragma GCC unroll 4
            for (int table = 0; table < kTables; ++table) {
                packed_[table][piece.codes[i + table]] += kOneValue + piece.residuals[i + table];
            }
        }
        for (; i < count; ++i) packed_[0][piece.codes[i]] += kOneValue + piece.residuals[i];
        if (++pieces_ == kFlushPieces) flush();
    }

    // How far beyond the outermost bins' centres clipped values lie, in steps.
    void add_clipped(const Int8Encode& op, std::int64_t first, std::int64_t count) {
        for (std::int64_t i = first; i < first + count; ++i) {
            const float scaled = scaled_value(op, op.values[i]);
            if (scaled < -128.0F) below_ += static_cast<double>(scaled) + 128.0;
            if (scaled > 127.0F) above_ += static_cast<double>(scaled) - 127.0;
        }
    }

    // Unpacks what was added since the last flush.
    void flush() {
        for (int bin = 0; bin < 256; ++bin) {
            for (int table = 0; table < kTables; ++table) {
                const std::int64_t packed = packed_[table][bin];
                const std::int64_t number = (packed + kOneValue / 2) >> 40;
                numbers_[bin] += number;
                residuals_[bin] += packed - number * kOneValue;
                packed_[table][bin] = 0;
            }
        }
        pieces_ = 0;
    }

    float mean(int bin, double mean, double step) const {
        if (numbers_[bin] == 0) return 0;
        double residual = static_cast<double>(residuals_[bin]) * kResidualUnit;
        if (bin == 0) residual += below_;
        if (bin == 255) residual += above_;
        return static_cast<float>(mean + step * (bin - 128 + residual / static_cast<double>(numbers_[bin])));
    }

  private:
    static constexpr int kTables = 4;
    static constexpr int kPadding =
        8;  // tables a multiple of 4096 bytes apart would look alike to the processor

    std::int64_t packed_[kTables][256 + kPadding] = {};
    std::int64_t numbers_[256] = {};
    std::int64_t residuals_[256] = {};
    double below_ = 0;
    double above_ = 0;
    std::int64_t pieces_ = 0;
};

// Chunks are encoded one after another: what follows this one in memory is brought nearer while it is worked on, which
// takes longer than the memory. Reads nothing, so whatever lies there does no harm.
void prefetch_piece(std::uintptr_t begin) {
    constexpr std::uintptr_t kLineBytes = 64;
    for (std::uintptr_t line = begin; line < begin + kPiece * sizeof(float); line += kLineBytes)
        __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
}

void run(const Int8Encode& op) {
    Piece piece;
    BinSums bins;
    const auto next_chunk = reinterpret_cast<std::uintptr_t>(op.values) + op.count * sizeof(float);
    for (std::int64_t first = 0; first < op.count; first += kPiece) {
        prefetch_piece(next_chunk + first * sizeof(float));
        const std::int64_t count = op.count - first < kPiece ? op.count - first : kPiece;
        quantise(op, first, count, piece);
        bins.add(piece, count);
        if (piece.clipped) bins.add_clipped(op, first, count);
        narrow(piece.codes, count, op.codes + first);
    }
    bins.flush();
    for (int bin = 0; bin < 256; ++bin) op.codebook[bin] = bins.mean(bin, op.mean, op.step);
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
