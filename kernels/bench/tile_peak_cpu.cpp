#include "kernels/bench/tile_peak.h"

#include "kernels/dispatch.h"
#include "kernels/tile_product.h"

namespace atl::kernels {

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const TilePeak& op) {
    using namespace ATOLL_INSTRUCTION_SET;
    constexpr int kDepth = 64;
    constexpr int kColumns = static_cast<int>(kPanelColumns<float>);
    const float* a = op.memory;
    const float* b = a + kTileRows * kDepth;
    float* c = op.memory + kTileRows * kDepth + kDepth * kColumns;
    for (std::int64_t i = 0; i < op.repetitions; ++i) {
        multiply_tile<kDepth, 1, 2, float>(a, {b, kColumns}, kDepth, {c, kColumns}, Into::overwrite);
    }
    *op.operations = 2.0 * static_cast<double>(op.repetitions) * kTileRows * kDepth * kColumns;
}

}  // namespace atl::kernels
