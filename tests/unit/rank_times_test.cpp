// How long ops took on several ranks: what is waiting and what is work, and that a serial step's parts add up to it.
#include "island/rank_times.h"

#include <gtest/gtest.h>

#include "program/text.h"

namespace atl {
namespace {

// A product, a sum over both ranks and another product; the sum on a link whose ranks run the same ops, or not.
std::vector<Program> two_ranks(const std::string& link) {
    std::vector<Program> programs;
    for (const char* rank : {"0", "1"})
        programs.push_back(parse_program("program 1 rank " + std::string(rank) +
                                         "\n"
                                         "group tp 0 1\n"
                                         "value x input device f32 [8,4]\n"
                                         "value w parameter device f32 [4,4]\n"
                                         "value y activation device f32 [8,4]\n"
                                         "value z activation device f32 [8,4]\n"
                                         "op 0 linear x w -> y layer=0 micro_batch=0\n"
                                         "op 1 all_reduce y -> y resource=" +
                                         link +
                                         " bytes=96 group=tp sequence=0 layer=0 micro_batch=0\n"
                                         "op 2 linear y w -> z layer=-1 micro_batch=-1\n"));
    return programs;
}

// One op at a time; rank 1 is 2 s late for the sum.
const StepTimesOfRanks kStep{{{0, 4}, {4, 9}, {9, 12}}, {{0, 6}, {6, 9}, {9, 12}}};

TEST(RankTimes, a_collective_counts_from_the_last_arrival_or_from_the_average_one) {
    const auto programs = two_ranks("link_intra");
    const auto graph = make_execution_graph(programs);
    EXPECT_EQ(durations(programs, graph, kStep, Arrival::last)[0], (std::vector<double>{4, 3, 3}));
    EXPECT_EQ(durations(programs, graph, kStep, Arrival::average)[0], (std::vector<double>{4, 4, 3}));
    EXPECT_EQ(durations(programs, graph, kStep, Arrival::average)[1], (std::vector<double>{6, 4, 3}));
    const auto far = two_ranks("link_inter");
    EXPECT_EQ(durations(far, make_execution_graph(far), kStep, Arrival::average)[0],
              (std::vector<double>{4, 3, 3}))
        << "ranks with other work come late by design";
}

TEST(RankTimes, average_arrivals_add_up_to_the_serial_step) {
    const auto programs = two_ranks("link_intra");
    const auto taken = durations(programs, make_execution_graph(programs), kStep, Arrival::average);
    double sum = 0;
    for (std::size_t op = 0; op < 3; ++op) sum += (taken[0][op] + taken[1][op]) / 2;
    EXPECT_DOUBLE_EQ(sum, end_of(kStep));
}

TEST(RankTimes, a_serial_steps_account_tells_work_from_waiting_and_layers_from_the_rest) {
    const auto programs = two_ranks("link_intra");
    const auto accounts = account_for(programs, make_execution_graph(programs), kStep);
    EXPECT_EQ(accounts[0].compute_seconds, 7);
    EXPECT_EQ(accounts[1].compute_seconds, 9);
    for (const SerialAccount& account : accounts) EXPECT_EQ(account.communication_seconds, 3);
    EXPECT_EQ(accounts[0].waiting_seconds, 2);
    EXPECT_EQ(accounts[1].waiting_seconds, 0);
    EXPECT_EQ(accounts[0].layer_seconds, 7);
    EXPECT_EQ(accounts[0].layer_communication_seconds, 3);
}

}  // namespace
}  // namespace atl
