#include "island/loaded_program.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

void fill_rope_table(const Program& program, const ProgramMemory& memory, const ModelShape& shape) {
    if (shape.kind != ModelKind::llama) return;
    const ValueId id = program.find("rope_table");
    const std::vector<double> table = rope_table(shape, program.value(id).shape.at(0));
    const BufferView view = memory.view(id);
    if (view.dtype == DType::f64) {
        std::ranges::copy(table, view.as<double>().begin());
    } else {
        std::ranges::transform(table, view.as<float>().begin(),
                               [](double x) { return static_cast<float>(x); });
    }
}

}  // namespace

LoadedProgram::LoadedProgram(Program program_to_run, const ModelShape& shape,
                             const ProgramMemoryOptions& memory_options,
                             const ExecutorOptions& executor_options)
    : program(std::move(program_to_run)),
      placement(place(program)),
      memory(program, placement, memory_options),
      executor(program, memory, executor_options) {
    fill_rope_table(program, memory, shape);
}

MicroBatchView LoadedProgram::inputs(std::int64_t micro_batch) {
    const auto input = [&](const char* name) {
        return memory.view(fmt::format("{}_{}", name, micro_batch)).as<std::int32_t>();
    };
    return {input("tokens"), input("targets"), input("positions"), input("starts")};
}

double LoadedProgram::loss(std::int64_t micro_batch) {
    return memory.view(fmt::format("loss_{}", micro_batch)).as<double>()[0];
}

std::int64_t LoadedProgram::measured_bytes() const {
    return memory.touched_bytes() + executor.allocations().peak_bytes;
}

}  // namespace atl
