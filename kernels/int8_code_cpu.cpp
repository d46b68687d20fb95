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

// Values that are quantised and then counted: so few that the processor, which looks some 500 operations ahead, does the
// one's vector work beside the other's additions to memory.
constexpr std::int64_t kPiece = 64;
constexpr double kResidualUnit = 0x1p-24;  // of a step; a residual of half a step is 2^23 of them
constexpr std::int64_t kFlushPieces =
    (1 << 15) / kPiece;  // 2^15 values: their residuals stay below half of kOneValue
constexpr std::int64_t kOneValue = std::int64_t{1} << 40;

struct Piece {
    alignas(64)
        std::int32_t residuals[kPiece];  // value less centre of its bin, in kResidualUnit; 0 where clipped
    bool clipped = false;                // anything was
};

typedef std::int32_t IntVector __attribute__((vector_size(kVectorBytes)));

// The first `lanes` of integers within 0…255, a byte each.
inline void store_bytes(IntVector values, std::int64_t lanes, std::uint8_t* to) {
    if (lanes < kLanes<float>) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane] = static_cast<std::uint8_t>(values[lane]);
        return;
    }
#if defined(__AVX512F__)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtepi32_epi8(0xFFFF, (__m512i)values));
#elif defined(__AVX2__)
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)values),
                                          _mm256_extracti128_si256((__m256i)values, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
#else
    const __m128i words = _mm_packs_epi32((__m128i)values, (__m128i)values);
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    __builtin_memcpy(to, &bytes, sizeof bytes);
#endif
}

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
        store_bytes(code, lanes, op.codes + first + i);
        store(reinterpret_cast<float*>(piece.residuals + i),
              (Vec<float>)__builtin_convertvector(residual, IntVector));
    });
    std::int32_t any = 0;
    for (int lane = 0; lane < kLanes<float>; ++lane) any |= outside[lane];
    piece.clipped = any != 0;
}

// Number and mean residual of the values of each bin. One 64-bit integer per bin holds both, so that each value
// costs one addition: the number in units of kOneValue, the residuals below. Several tables take turns, because
// neighbouring values often share a bin and an addition to the same memory waits for the one before.
class BinSums {
  public:
    void add(const std::uint8_t* codes, const Piece& piece, std::int64_t count) {
        std::int64_t i = 0;
        for (; i + kTables <= count; i += kTables) {
#pragma GCC unroll 4
            for (int table = 0; table < kTables; ++table) {
                packed_[table][codes[i + table]] += kOneValue + piece.residuals[i + table];
            }
        }
        for (; i < count; ++i) packed_[0][codes[i]] += kOneValue + piece.residuals[i];
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
        bins.add(op.codes + first, piece, count);
        if (piece.clipped) bins.add_clipped(op, first, count);
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
