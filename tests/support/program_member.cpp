// One rank of random programs (support/random_ranks.h) over Gloo, for tests that start several as processes:
//   program_member MEETING_DIRECTORY RANK SIZE SEED STEPS MODE...
// Runs so many steps in each mode and prints the digest of each step's output. STEPS 0 runs the first mode without end:
// rank 0 touches MEETING_DIRECTORY/begun after the first step, and the error that ends it is printed.
#include "comm/island/gloo_collective.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/program_rank.h"
#include "support/random_ranks.h"

namespace atl {
namespace {

constexpr Milliseconds kTimeout{60'000};

struct Groups {
    std::unique_ptr<IslandCollective> world;
    std::unique_ptr<IslandCollective> tp;  // of ranks 0 and 1, if there are more
    std::unique_ptr<PointToPoint> messages;

    ExecutorOptions options(ExecutionMode mode) const {
        ExecutorOptions options{.collective_timeout = kTimeout,
                                .groups = {{"world", world.get()}},
                                .point_to_point = messages.get(),
                                .mode = mode};
        if (tp) options.groups["tp"] = tp.get();
        return options;
    }
};

Groups meet(const std::filesystem::path& directory, Rank rank, std::int32_t size) {
    Groups groups;
    auto all = make_file_rendezvous(directory, rank, size);
    groups.world = make_gloo_collective({.group = "world", .rank = rank, .size = size}, *all);
    groups.messages = make_gloo_point_to_point({.group = "messages", .rank = rank, .size = size}, *all);
    if (size > 2 && rank < Rank(2)) {
        auto two = make_file_rendezvous(directory / "tp", rank, 2);
        groups.tp = make_gloo_collective({.group = "tp", .rank = rank, .size = 2}, *two);
    }
    return groups;
}

int run(int argc, char** argv) {
    if (argc < 7) return 2;
    check_gloo_library();
    const std::filesystem::path directory = argv[1];
    const Rank rank(std::stoi(argv[2]));
    const std::int32_t size = std::stoi(argv[3]);
    const int steps = std::stoi(argv[5]);
    const Groups groups = meet(directory, rank, size);
    const auto programs = test::random_rank_programs({.seed = std::stoull(argv[4]), .ranks = size});
    const auto load = [&](const char* mode) {
        return test::ProgramRank(programs[static_cast<std::size_t>(rank.value())], 3,
                                 groups.options(execution_mode_from_name(mode).value()));
    };
    if (steps == 0) {
        test::ProgramRank program = load(argv[6]);
        try {
            for (std::uint64_t step = 0;; ++step) {
                program.run(step);
                if (step == 0 && rank == Rank(0))
                    make_system_file_system()->write_text_atomically(directory / "begun", "");
            }
        } catch (const CommError& error) {
            fmt::print("{}\n", error.what());
        }
        return 0;
    }
    for (int i = 6; i < argc; ++i) {
        test::ProgramRank program = load(argv[i]);
        for (int step = 0; step < steps; ++step)
            fmt::print("{}\n", program.run(static_cast<std::uint64_t>(step)));
    }
    groups.world->barrier(kTimeout);  // nobody leaves while others still exchange
    return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
    return atl::run(argc, argv);
}
