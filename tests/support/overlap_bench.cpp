// How well two ranks on one machine hide communication behind compute, each pinned to a processor of its own with one
// compute thread:
//   overlap_bench
// starts the two ranks and prints rank 0's table: a step of all-gathers alone, of matrix products alone, and of both
// with nothing to wait for, in every mode; and a chain of tiny sums that each wait for a tiny collective, for what
// handing over between threads costs. Least and median of the steps, and the processor time of the whole rank.
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "comm/island/gloo_collective.h"
#include "core/child_process.h"
#include "engine/executor.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

constexpr int kSteps = 10;
constexpr int kPairs = 8;
constexpr std::int64_t kTokens = 1024;
constexpr std::int64_t kHidden = 512;

struct Load {
    bool communicates = true;
    bool computes = true;
    bool is_chain = false;
};

class ProgramMaker {
  public:
    explicit ProgramMaker(Rank rank) : builder_(rank) { builder_.add_group("tp", {Rank(0), Rank(1)}); }

    Program make(const Load& load) { return load.is_chain ? chain() : pairs(load); }

  private:
    ValueId value(const char* name, Role role, Shape shape) {
        return builder_.add(Value{.name = fmt::format("{}{}", name, builder_.program().values.size()),
                                  .shape = std::move(shape),
                                  .role = role});
    }
    Op collective(OpKind kind, ValueId from, ValueId to) {
        return {.kind = kind,
                .attributes = CollectiveAttributes{"tp", sequence_++},
                .reads = {from},
                .writes = {to},
                .resource = Resource::link_intra};
    }

    Program pairs(const Load& load) {
        const ValueId piece = value("piece", Role::input, {kTokens / 2, kHidden});
        const ValueId x = value("x", Role::input, {kTokens, kHidden});
        const ValueId weight = value("weight", Role::parameter, {kHidden, kHidden});
        for (int i = 0; i < kPairs; ++i) {
            if (load.communicates)
                builder_.add(
                    collective(OpKind::all_gather, piece, value("whole", Role::output, {kTokens, kHidden})));
            if (load.computes)
                builder_.add(Op{.kind = OpKind::linear,
                                .attributes = NoAttributes{},
                                .reads = {x, weight},
                                .writes = {value("y", Role::output, {kTokens, kHidden})}});
        }
        return builder_.take();
    }

    Program chain() {
        ValueId last = value("x", Role::input, {2, 1});
        for (int i = 0; i < kPairs; ++i) {
            const ValueId piece = value("piece", Role::output, {1, 1});
            builder_.add(collective(OpKind::reduce_scatter, last, piece));
            const ValueId whole = value("whole", Role::output, {2, 1});
            builder_.add(collective(OpKind::all_gather, piece, whole));
            last = value("sum", Role::output, {2, 1});
            builder_.add(Op{.kind = OpKind::add,
                            .attributes = NoAttributes{},
                            .reads = {whole, whole},
                            .writes = {last}});
        }
        return builder_.take();
    }

    ProgramBuilder builder_;
    std::int32_t sequence_ = 0;
};

double processor_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(const char* name, const Load& load, ExecutionMode mode, IslandCollective& group) {
    Program program = ProgramMaker(group.rank()).make(load);
    const Placement placement = place(program);
    const ProgramMemory memory(program, placement);
    Executor executor(program, memory, {.groups = {{"tp", &group}}, .mode = mode});
    executor.run();
    const double begin = processor_seconds();
    std::vector<double> seconds;
    for (int step = 0; step < kSteps; ++step) {
        executor.reset_times();
        executor.run();
        seconds.push_back(executor.times().step_seconds);
    }
    const double busy = (processor_seconds() - begin) / kSteps;
    std::ranges::sort(seconds);
    if (group.rank() == Rank(0)) {
        fmt::print("{:<22} {:<8} {:>8.2f} ms least {:>8.2f} median {:>8.2f} processor\n", name,
                   atl::name(mode), 1e3 * seconds.front(), 1e3 * seconds[kSteps / 2], 1e3 * busy);
    }
}

int run_rank(const std::filesystem::path& directory, Rank rank) {
    auto rendezvous = make_file_rendezvous(directory, rank, 2);
    auto group = make_gloo_collective({.group = "tp", .rank = rank, .size = 2}, *rendezvous);
    for (int round = 0; round < 1; ++round) {
        measure("compute alone", {.communicates = false}, ExecutionMode::event, *group);
        measure("communication alone", {.computes = false}, ExecutionMode::event, *group);
        for (const auto mode : {ExecutionMode::event, ExecutionMode::barrier, ExecutionMode::serial})
            measure("both", {}, mode, *group);
        for (const auto mode : {ExecutionMode::event, ExecutionMode::serial})
            measure("chain of tiny ops", {.is_chain = true}, mode, *group);
    }
    return 0;
}

int run(int argc, char** argv) {
    if (argc == 3) return run_rank(argv[1], Rank(std::stoi(argv[2])));
    const test::TemporaryDirectory directory;
    std::vector<std::unique_ptr<ChildProcess>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
        ranks.push_back(std::make_unique<ChildProcess>(ChildOptions{
            .command = {argv[0], directory.path().string(), std::to_string(rank)}, .processors = {rank}}));
    }
    for (auto& rank : ranks) {
        const auto status = rank->wait_for(Milliseconds(300'000));
        if (!status || !status->ok()) return 1;
    }
    return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
    return atl::run(argc, argv);
}
