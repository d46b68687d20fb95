// Real models in every schedule's order: no program is refused, every mode runs to its end on the virtual clock, and
// every rank's memory is placed without collision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/training_program.h"
#include "program/checker.h"
#include "program/placement.h"
#include "program/schedule.h"
#include "program/virtual_executor.h"
#include "support/random_program.h"
#include "support/small_models.h"

namespace atl {
namespace {

struct Mesh {
    std::int32_t tp = 1, pp = 1, dp = 1;
    bool zero = false;
};

std::vector<Program> programs_of(const ModelShape& shape, const Mesh& mesh, const ScheduleTable& table) {
    const ParallelShape parallel{.tp = mesh.tp,
                                 .pp = mesh.pp,
                                 .dp = mesh.dp,
                                 .chunks = table.pipeline.chunks,
                                 .placement = table.pipeline.placement,
                                 .zero = mesh.zero};
    std::vector<Program> programs;
    for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank)
        programs.push_back(expand(emit_training_step(shape, {.context = 16,
                                                             .micro_batches = table.micro_batches,
                                                             .rank = Rank(rank),
                                                             .parallel = parallel,
                                                             .bucket_bytes = 60'000}),
                                  table));
    return programs;
}

// Every kind on every mesh of up to eight ranks; micro-batches fewer than, as many as and more than pipeline ranks.
template <class Visit>
void for_each_real_step(Visit&& visit) {
    test::RandomChoice random(11);
    for (const Mesh mesh : {Mesh{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}, {1, 2, 2, true}, {1, 4, 1},
                            {2, 2, 2}, {2, 4, 1}, {3, 2, 1}, {1, 1, 2, true}})
        for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind) {
            ScheduleOptions options{static_cast<ScheduleKind>(kind), mesh.pp};
            const std::vector<std::int32_t> counts = {mesh.pp - 1, mesh.pp, 2 * mesh.pp, 2 * mesh.pp + 1};
            options.micro_batches = std::max(1, random.any(counts));
            if (options.kind == ScheduleKind::strands && random.one_in(2))
                options.memory_micro_batches = mesh.pp + 2;
            auto shape = random.one_in(2) ? test::tiny_llama() : test::tiny_gpt2();
            shape.layers = 2 * mesh.pp + random.below(3);
            SCOPED_TRACE(fmt::format("{} tp {} pp {} dp {} zero {} micro-batches {} layers {} {}",
                                     name(options.kind), mesh.tp, mesh.pp, mesh.dp, mesh.zero,
                                     options.micro_batches, shape.layers, shape.tied ? "tied" : "untied"));
            const auto table = make_schedule_table(options);
            visit(table, programs_of(shape, mesh, table));
        }
}

TEST(PipelineProgramProperty, no_program_of_any_schedule_is_refused) {
    for_each_real_step([](const ScheduleTable& table, std::vector<Program> programs) {
        const auto problems = check_programs(programs);
        ASSERT_TRUE(problems.empty()) << problems.front() << "\n" << print(table);
        for (auto& program : programs) {
            const auto collisions = check_placement(program, place(program));
            ASSERT_TRUE(collisions.empty()) << collisions.front();
        }
        for (const auto mode : {ExecutionMode::event, ExecutionMode::barrier, ExecutionMode::serial}) {
            std::vector<std::vector<double>> seconds;
            for (const auto& program : programs) seconds.emplace_back(program.ops.size(), 1.0);
            EXPECT_GT(execute_virtually(programs, seconds, mode).step_seconds, 0);
        }
    });
}

}  // namespace
}  // namespace atl
