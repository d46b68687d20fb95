// Speeds of the kernels, per instruction set: attention beside its own register tile. `atoll bench kernels` has the
// codecs.
//
//   bench_kernels --benchmark_filter=attention
//
// Times are CPU times of one thread; rates are per second of them.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <string>
#include <vector>

#include "core/random.h"
#include "kernels/attention.h"
#include "kernels/bench/tile_peak.h"
#include "kernels/dispatch.h"
#include "kernels/outer_step.h"

namespace atl::kernels {
namespace {

using benchmark::Counter;
using benchmark::State;

std::vector<float> values(std::int64_t count) {
    const RandomStream random(1, "benchmark");
    std::vector<float> result(count);
    for (std::int64_t i = 0; i < count; ++i) result[i] = static_cast<float>(random.normal(i));
    return result;
}

void count_flops(State& state, double per_iteration) {
    state.counters["flop/s"] = Counter(per_iteration, Counter::kIsIterationInvariantRate);
}
void count_bytes(State& state, double per_iteration) {
    state.counters["fp32_bytes/s"] = Counter(per_iteration, Counter::kIsIterationInvariantRate);
}

void tile_peak(State& state, InstructionSet set) {
    auto memory = values(kTilePeakElements);
    double operations = 0;
    for (auto _ : state) dispatch(TilePeak{1000, memory.data(), &operations}, set);
    count_flops(state, operations);
}

struct AttentionMemory {
    explicit AttentionMemory(std::int64_t tokens)
        : shape{tokens, 8, 8, 64},
          starts(tokens + 1, static_cast<std::int32_t>(tokens)),
          qkv(values(tokens * shape.row_width())),
          dout(values(tokens * 512)),
          out(tokens * 512),
          lse(tokens * 8),
          dqkv(qkv.size()),
          scratch(attention_backward_scratch_bytes(shape, sizeof(float))) {
        starts[0] = 0;
    }
    void forward(InstructionSet set) {
        attention(Attention<float>{shape, qkv.data(), starts.data(), out.data(), lse.data(), scratch.data()},
                  set);
    }
    void backward(InstructionSet set) {
        attention_backward(AttentionBackward<float>{shape, dout.data(), qkv.data(), out.data(), lse.data(),
                                                    starts.data(), dqkv.data(), scratch.data()},
                           set);
    }
    // Of the causal half alone; the backward does 2.5 times as much.
    double forward_flops() const { return 2.0 * shape.tokens * shape.tokens * 512; }

    AttentionShape shape;
    std::vector<std::int32_t> starts;
    std::vector<float> qkv, dout, out, lse, dqkv;
    std::vector<std::byte> scratch;
};

void attention_forward(State& state, InstructionSet set) {
    AttentionMemory memory(state.range(0));
    for (auto _ : state) memory.forward(set);
    count_flops(state, memory.forward_flops());
}

void attention_backward(State& state, InstructionSet set) {
    AttentionMemory memory(state.range(0));
    memory.forward(set);
    for (auto _ : state) memory.backward(set);
    count_flops(state, 2.5 * memory.forward_flops());
}

constexpr std::int64_t kOuterValues = 65536;

void outer_nesterov(State& state, InstructionSet set) {
    const auto delta = values(kOuterValues);
    auto theta = delta;
    auto velocity = delta;
    for (auto _ : state) outer_sgd_step({0.0F, 0.9F, true}, delta, theta, velocity, set);
    count_bytes(state, kOuterValues * 4.0);
}

void register_all() {
    for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
        if (!is_supported(set)) continue;
        const auto add = [&](const char* kernel, auto function) {
            return benchmark::RegisterBenchmark((std::string(name(set)) + "/" + kernel).c_str(), function,
                                                set);
        };
        add("tile_peak", tile_peak);
        add("attention_forward", attention_forward)->Arg(256)->Arg(512)->Arg(1024);
        add("attention_backward", attention_backward)->Arg(256)->Arg(512)->Arg(1024);
        add("outer_nesterov", outer_nesterov);
    }
}

}  // namespace
}  // namespace atl::kernels

int main(int argc, char** argv) {
    omp_set_num_threads(1);
    atl::kernels::register_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
