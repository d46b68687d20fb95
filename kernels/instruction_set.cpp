#include "kernels/instruction_set.h"

namespace atl::kernels {

bool is_supported(InstructionSet set) {
    switch (set) {
        case InstructionSet::baseline:
            return true;
        case InstructionSet::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("f16c");
        case InstructionSet::avx512:
            return is_supported(InstructionSet::avx2) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    }
    return false;
}

InstructionSet best_instruction_set() {
    static const InstructionSet best = is_supported(InstructionSet::avx512) ? InstructionSet::avx512
                                       : is_supported(InstructionSet::avx2) ? InstructionSet::avx2
                                                                            : InstructionSet::baseline;
    return best;
}

std::string_view name(InstructionSet set) {
    switch (set) {
        case InstructionSet::baseline:
            return "baseline";
        case InstructionSet::avx2:
            return "avx2";
        case InstructionSet::avx512:
            return "avx512";
    }
    return "unknown";
}

}  // namespace atl::kernels
