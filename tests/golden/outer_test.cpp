// Outer steps, a streamed run and methods that are a round late against numbers that tools/make_outer_golden.py computed from the formulas, to the last
// bit: the order of operations and their roundings are part of what sites agree on.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "outer/outer.h"
#include "outer/outer_model.h"
#include "rounds/fragment_schedule.h"

namespace atl {
namespace {

struct Line {
    std::string word, name;  // `name`: the first value, if it is a word
    std::vector<float> values;
};

std::vector<Line> read_golden() {
    std::ifstream file(std::string(std::getenv("ATOLL_SOURCE_DIR")) + "/tests/golden/outer.txt");
    std::vector<Line> lines;
    for (std::string text; std::getline(file, text);) {
        std::istringstream words(text);
        Line& line = lines.emplace_back();
        words >> line.word;
        for (std::string word; words >> word;) {
            char* end = nullptr;
            const float value = std::strtof(word.c_str(), &end);
            if (*end == '\0')
                line.values.push_back(value);
            else
                line.name = word;
        }
    }
    return lines;
}

TEST(GoldenOuterStep, every_rule_gives_the_bits_of_its_formula) {
    const std::map<std::string, OuterRule> rules{{"sgd", OuterRule::sgd},
                                                 {"heavy_ball", OuterRule::heavy_ball},
                                                 {"nesterov", OuterRule::nesterov},
                                                 {"adam", OuterRule::adam}};
    OuterSettings settings;
    std::vector<float> anchor, momentum, second;
    std::int64_t round = 0, compared = 0;
    for (const Line& line : read_golden()) {
        if (line.word == "streaming") break;
        if (line.word == "rule") {
            settings = {.rule = rules.at(line.name),
                        .lr = line.values[0],
                        .momentum = line.values[1],
                        .second_decay = line.values[2],
                        .epsilon = line.values[3]};
            anchor.clear();
            round = 0;
        } else if (line.word == "delta") {
            outer_step(settings, Round(round++), line.values, anchor, {.momentum = momentum, .second = second});
        } else if (anchor.empty()) {
            anchor = line.values;
            momentum.assign(anchor.size(), 0.0F);
            second.assign(anchor.size(), 0.0F);
        } else {
            EXPECT_EQ(anchor, line.values) << "rule " << int(settings.rule) << " round " << round;
            ++compared;
        }
    }
    EXPECT_EQ(compared, 4 * 6);
}

TEST(GoldenStreaming, two_sites_with_overlapped_fragments_step_as_the_reference_does) {
    const OuterSettings settings{.rule = OuterRule::nesterov, .lr = 0.6F, .momentum = 0.9F, .alpha = 0.5F};
    const FragmentSchedule schedule{.inner_steps = 6, .fragments = 2, .overlap_steps = 2};
    std::vector<OuterModel> sites(2, OuterModel({.tensors_and_elements = {{"layers.0.w", 2}, {"layers.1.w", 2}},
                                                 .fragments = 2}));
    std::vector<std::vector<float>> local(2), deltas(2, std::vector<float>(2));
    std::vector<float> anchor(4);
    std::int64_t done = 0, compared = 0;
    bool streaming = false;
    const auto exchange = [&] {
        if (const auto fragment = schedule.starts_after(Step(done)))
            for (std::size_t i = 0; i < 2; ++i) sites[i].contribute(*fragment, local[i], {.overlapped = true}, deltas[i]);
        const auto fragment = schedule.applies_after(Step(done));
        if (!fragment) return;
        std::vector<float> mean(2);
        weighted_mean(std::vector<WeightedDelta>{{deltas[0]}, {deltas[1]}}, mean);
        const Round round((done - 1) / 6);
        for (std::size_t i = 0; i < 2; ++i) sites[i].apply(*fragment, settings, {.mean = mean, .round = round}, local[i]);
    };
    for (const Line& line : read_golden()) {
        if (line.word == "late") break;
        if (line.word == "streaming") streaming = true;
        if (!streaming || line.word == "streaming") continue;
        const auto site = static_cast<std::size_t>(line.values[0]);
        if (line.word == "anchor" && local[0].empty()) {
            for (std::size_t i = 0; i < 2; ++i) {
                local[i] = line.values;
                sites[i].begin(line.values);
            }
        } else if (line.word == "move") {
            for (std::size_t i = 0; i < 4; ++i) local[site][i] -= line.values[i + 1];
        } else if (line.word == "anchor") {
            ++done;
            exchange();
            for (const OuterModel& model : sites) {
                model.copy_anchors(anchor);
                EXPECT_EQ(anchor, line.values) << "step " << done;
            }
        } else {
            EXPECT_EQ(local[site], std::vector<float>(line.values.begin() + 1, line.values.end()))
                << "site " << site << " step " << done;
            ++compared;
        }
    }
    EXPECT_EQ(compared, 2 * 18);
}

// The lines of one method that is a round late, without its heading.
std::vector<Line> read_late(const std::string& method) {
    std::vector<Line> lines;
    bool mine = false;
    for (const Line& line : read_golden()) {
        if (line.word == "late")
            mine = line.name == method;
        else if (mine)
            lines.push_back(line);
    }
    return lines;
}

class GoldenLateMethod : public testing::TestWithParam<const char*> {};

TEST_P(GoldenLateMethod, steps_two_sites_through_whole_rounds_of_overlap_as_the_reference_does) {
    const OuterMethod& method = outer_method(GetParam());
    const OuterSettings settings{.rule = OuterRule::nesterov, .lr = 0.6F, .momentum = 0.9F};
    constexpr int kRounds = 5;
    std::vector<OuterModel> sites(2, OuterModel({.tensors_and_elements = {{"w", 3}},
                                                 .buffers = method.buffers(settings.rule),
                                                 .method = &method}));
    std::vector<std::vector<float>> local(2), deltas(2, std::vector<float>(3));
    std::vector<float> anchor(3);
    int round = -1, compared = 0;  // −1: before the parameters are read
    const auto contribute = [&](std::size_t site, bool overlapped) {
        sites[site].contribute(FragmentId(0), local[site], {.overlapped = overlapped}, deltas[site]);
    };
    for (const Line& line : read_late(GetParam())) {
        const auto site = static_cast<std::size_t>(line.values[0]);
        const bool last = round == kRounds - 1;
        if (line.word == "anchor" && round < 0) {
            for (std::size_t i = 0; i < 2; ++i) sites[i].begin(local[i] = line.values);
            round = 0;
        } else if (line.word == "move") {
            if (!last) contribute(site, true);
            for (std::size_t i = 0; i < 3; ++i) local[site][i] -= line.values[i + 1];
            if (last) contribute(site, false);
        } else if (line.word == "anchor") {
            std::vector<float> mean(3);
            weighted_mean(std::vector<WeightedDelta>{{deltas[0]}, {deltas[1]}}, mean);
            for (std::size_t i = 0; i < 2; ++i) {
                sites[i].apply(FragmentId(0), settings,
                               {.mean = mean, .round = Round(round), .share = 0.5F, .overlapped = !last}, local[i]);
                sites[i].copy_anchors(anchor);
                EXPECT_EQ(anchor, line.values) << "site " << i << " round " << round;
            }
            ++round;
        } else {
            EXPECT_EQ(local[site], std::vector<float>(line.values.begin() + 1, line.values.end()))
                << "site " << site << " after round " << round;
            ++compared;
        }
    }
    EXPECT_EQ(compared, 2 * kRounds);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLateMethod, testing::Values("delayed", "eager"));

}  // namespace
}  // namespace atl
