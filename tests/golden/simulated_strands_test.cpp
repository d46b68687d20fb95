// Simulated steps of islands: held against published speed-ups, and printed as they were.
#include <gtest/gtest.h>

#include "simulator/predicted_steps.h"
#include "simulator/schedule_sweep.h"
#include "support/golden_text.h"

namespace atl {
namespace {

TEST(GoldenSimulatedStrands, published_speed_ups_are_met_within_the_stated_bound_leaving_one_out) {
    const auto predicted = predict_published_steps();
    EXPECT_EQ(predicted.size(), 15u);
    EXPECT_LE(errors_of(predicted).interleaved, kGreatestSpeedupError);
    // Published of these two beside their speeds; the clusters' efficiencies are chosen for them.
    const auto share_of = [&](const std::string& name, const std::vector<std::string>& groups) {
        double share = 0;
        for (std::size_t i = 0; i < predicted.size(); ++i)
            for (const auto& group : groups)
                if (published_steps()[i].name == name) share += predicted[i].group_shares.at(group);
        return share;
    };
    EXPECT_NEAR(share_of("Llama-39B long", {"tp", "cp"}), 0.55, 0.02);
    EXPECT_NEAR(share_of("Llama-66B 16k", {"tp"}), 0.10, 0.01);
    test::expect_golden_text("simulated/published_steps.txt", print(predicted));
}

TEST(GoldenSimulatedStrands, sweeps_and_the_region_where_interleaving_loses) {
    const IslandStep step{.shape = {.kind = ModelKind::llama,
                                    .layers = 16,
                                    .hidden = 2048,
                                    .heads = 16,
                                    .kv_heads = 16,
                                    .head_width = 128,
                                    .ffn = 5632,
                                    .vocab = 4096,
                                    .context = 2048},
                          .tp = 4,
                          .context = 2048};
    ScheduleSweep schedules(step, rates_of(cluster_from_name("a40"), 4));
    const SweepPoint base{.pipeline_ranks = 2, .micro_batches = 8};
    auto text = print(sweep(schedules, sweep_axes(base).front()));
    const auto region = overlap_region(schedules, base);
    text += print(region);
    test::expect_golden_text("simulated/sweep.txt", text);
    EXPECT_LT(region.gains.front().back(), 1) << "ops that harm each other";
    EXPECT_GT(region.gains.back().back(), 1.1) << "all hidden";
    EXPECT_NE(to_svg(region).find("simulated"), std::string::npos);
}

}  // namespace
}  // namespace atl
