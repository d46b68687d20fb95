// One data-parallel rank of a small island over Gloo, for tests that start several as processes:
//   island_trainer MEETING_DIRECTORY RANK SIZE STEPS
// Trains and prints the parameters' hash. STEPS 0 trains without end: rank 0 touches MEETING_DIRECTORY/training
// after the first step, and the error that ends it is printed.
#include <string>

#include "comm/island/gloo_collective.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/island_testing.h"

namespace atl {
namespace {

int run(int argc, char** argv) {
    if (argc != 5) return 2;
    check_gloo_library();
    const std::filesystem::path directory = argv[1];
    const Rank rank(std::stoi(argv[2]));
    const std::int32_t size = std::stoi(argv[3]);
    const int steps = std::stoi(argv[4]);
    auto rendezvous = make_file_rendezvous(directory, rank, size);
    auto group = make_gloo_collective({.group = "dp", .rank = rank, .size = size}, *rendezvous);
    auto options = test::small_island(test::small_llama(), 1);
    options.parallel.dp = size;
    Island island(options, {.rank = rank,
                            .world = group.get(),
                            .messages = nullptr,
                            .groups = {{"dp", group.get()}},
                            .step_messages = nullptr});
    island.initialise(4);
    try {
        for (int step = 0; steps == 0 || step < steps; ++step) {
            test::random_step(island, step);
            if (steps == 0 && step == 0 && rank == Rank(0)) {
                make_system_file_system()->write_text_atomically(directory / "training", "");
            }
        }
        fmt::print("{}\n", island.parameters_blake2b());
    } catch (const CommError& error) {
        fmt::print("{}\n", error.what());
    }
    return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
    return atl::run(argc, argv);
}
