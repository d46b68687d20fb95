// Which vector instructions a kernel uses: chosen at run time, one binary for every x86-64 processor.
//
// Every kernel takes an InstructionSet as its last argument; the default is the best this processor has.
// Tests and benchmarks pass others. The kernels of block_code.h, half_precision.h, outer_step.h and top_k_code.h give
// the same bits under all of them; the others agree to rounding.
#pragma once

#include <cstdint>
#include <string_view>

namespace atl::kernels {

enum class InstructionSet : std::uint8_t {
    baseline,  // what every x86-64 processor has (SSE2)
    avx2,      // AVX2, FMA and F16C
    avx512,    // AVX-512 F, BW, DQ, VL
};

bool is_supported(InstructionSet set);  // by this processor
InstructionSet best_instruction_set();  // the last supported one; found once
std::string_view name(InstructionSet set);

}  // namespace atl::kernels
