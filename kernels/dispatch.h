// From a kernel's arguments to the variant compiled for an instruction set.
//
// The type of the arguments names the kernel. Each x_cpu.cpp is compiled once per instruction set and
// specialises `run_variant` for its argument types; x.cpp checks the arguments and calls `dispatch`.
#pragma once

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <InstructionSet Set, class Arguments>
void run_variant(const Arguments& arguments);

template <class Arguments>
void dispatch(const Arguments& arguments, InstructionSet set) {
    switch (set) {
        case InstructionSet::avx512:
            return run_variant<InstructionSet::avx512>(arguments);
        case InstructionSet::avx2:
            return run_variant<InstructionSet::avx2>(arguments);
        case InstructionSet::baseline:
            return run_variant<InstructionSet::baseline>(arguments);
    }
}

}  // namespace atl::kernels
