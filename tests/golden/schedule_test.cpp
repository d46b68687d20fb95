// A table and two ranks' programs of every schedule, so that no change to generators or expansion goes unnoticed.
#include <gtest/gtest.h>

#include "model/training_program.h"
#include "program/cost_model.h"
#include "program/schedule_comparison.h"
#include "program/text.h"
#include "support/golden_text.h"
#include "support/pipeline_step.h"

namespace atl {
namespace {

TEST(GoldenSchedule, of_every_kind_on_two_ranks) {
    for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind) {
        const ScheduleOptions options{static_cast<ScheduleKind>(kind), 2, 3};
        const auto table = make_schedule_table(options);
        const auto steps = test::make_pipeline_steps({.pipeline = table.pipeline,
                                                      .layers = table.pipeline.stages(),
                                                      .micro_batches = 3,
                                                      .tokens = 2,
                                                      .hidden = 2});
        auto text = print(table);
        for (const auto& program : test::expand_all(steps, table)) text += print(program);
        test::expect_golden_text(fmt::format("schedules/{}.program", name(options.kind)), text);
    }
}

// A llama of 16 layers on four ranks, two pipeline stages of two tensor-parallel ranks or four stages of one, over
// links of 1 Gbit/s: what each schedule takes on the virtual executor, and the activations it places.
std::string compare(std::int32_t tensor_ranks, std::int32_t pipeline_ranks) {
    const ModelShape shape{.kind = ModelKind::llama,
                           .layers = 16,
                           .hidden = 512,
                           .heads = 8,
                           .kv_heads = 8,
                           .head_width = 64,
                           .ffn = 1408,
                           .vocab = 2048,
                           .context = 512};
    const LinkRate link{.bytes_per_second = 125e6, .latency_seconds = 50e-6};
    const MachineRates rates{.flops_per_second = 85e9,
                             .memory_bytes_per_second = 8e9,
                             .link_intra = link,
                             .link_inter = link,
                             .point_to_point = link};
    std::vector<ScheduleFigures> all;
    for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind) {
        const ScheduleOptions options{static_cast<ScheduleKind>(kind), pipeline_ranks, 8};
        const auto table = make_schedule_table(options);
        const ParallelShape parallel{.tp = tensor_ranks,
                                     .pp = pipeline_ranks,
                                     .chunks = table.pipeline.chunks,
                                     .placement = table.pipeline.placement};
        std::vector<Program> programs;
        std::vector<Placement> placements;
        std::vector<std::vector<double>> seconds;
        for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank) {
            programs.push_back(expand(
                emit_training_step(shape, {.micro_batches = 8, .rank = Rank(rank), .parallel = parallel}),
                table));
            placements.push_back(place(programs.back()));
            seconds.push_back(predicted_seconds(programs.back(), rates));
        }
        all.push_back(
            measure(std::string(name(options.kind)), placements, execute_virtually(programs, seconds)));
    }
    return fmt::format("tp {} pp {}\n{}", tensor_ranks, pipeline_ranks, print(all, "MB of activations"));
}

TEST(GoldenSchedule, predicted_time_bubble_and_memory_of_a_llama) {
    test::expect_golden_text("schedules/comparison.txt", compare(2, 1) + compare(2, 2) + compare(1, 4));
}

}  // namespace
}  // namespace atl
