// Selection of a tile's largest magnitudes. The bits of a magnitude order as it does, so all of this is integers.
#include "kernels/dispatch.h"
#include "kernels/simd.h"
#include "kernels/top_k_code_steps.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

constexpr std::int64_t kTile = 4096;
constexpr std::int64_t kFewestGroups = 128;

inline std::int32_t magnitude_of(float value) {
    return __builtin_bit_cast(std::int32_t, value) & 0x7fffffff;
}

// A number that at least `rank` keys reach and at most `rank` exceed, found bit by bit from the top.
std::int32_t separator(const std::int32_t* keys, std::int64_t count, std::int64_t rank) {
    std::int32_t found = 0;
    for (int bit = 30; bit >= 0; --bit) {
        const std::int32_t trial = found | std::int32_t{1} << bit;
        std::int32_t reached = 0;
        for (std::int64_t i = 0; i < count; ++i) reached += keys[i] >= trial ? 1 : 0;
        if (reached >= rank) found = trial;
        if (reached == rank) break;
    }
    return found;
}

// A magnitude that at least `kept` values reach: they lie in as many groups, whose largest members are compared.
// Strided groups keep the loop over vectors.
std::int32_t least_candidate(const TopKSelect& op, std::int32_t* largest) {
    std::int64_t groups = kFewestGroups;
    while (groups < 2 * op.kept) groups *= 2;
    if (groups > op.count / 4) return 0;
    for (std::int64_t group = 0; group < groups; ++group) largest[group] = 0;
    for (std::int64_t row = 0; row + groups <= op.count; row += groups) {
        for (std::int64_t group = 0; group < groups; ++group) {
            const std::int32_t key = magnitude_of(op.values[row + group]);
            largest[group] = key > largest[group] ? key : largest[group];
        }
    }
    return separator(largest, groups, op.kept);
}

bool all_finite(const TopKSelect& op) {
    std::int32_t largest = 0;
    for (std::int64_t i = 0; i < op.count; ++i) {
        const std::int32_t key = magnitude_of(op.values[i]);
        largest = key > largest ? key : largest;
    }
    return largest < 0x7f800000;
}

void run(const TopKSelect& op) {
    *op.finite = all_finite(op);
    if (!*op.finite) return;
    std::int32_t keys[kTile];
    const std::int32_t least = least_candidate(op, keys);
    std::int64_t candidates = 0;
    for (std::int64_t i = 0; i < op.count; ++i) {
        const std::int32_t key = magnitude_of(op.values[i]);
        op.indices[candidates] = static_cast<std::int32_t>(i);
        keys[candidates] = key;
        candidates += key >= least ? 1 : 0;
    }
    const std::int32_t limit = separator(keys, candidates, op.kept);
    std::int64_t above = 0;
    for (std::int64_t i = 0; i < candidates; ++i) above += keys[i] > limit ? 1 : 0;
    std::int64_t equals = op.kept - above;  // so many of those at the limit, the first ones
    std::int64_t chosen = 0;
    for (std::int64_t i = 0; i < candidates; ++i) {
        const bool takes = keys[i] > limit || (keys[i] == limit && equals-- > 0);
        op.indices[chosen] = op.indices[i];
        chosen += takes ? 1 : 0;
    }
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

template <>
void run_variant<ATOLL_INSTRUCTION_SET::kInstructionSet>(const TopKSelect& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
