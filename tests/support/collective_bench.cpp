// What collectives cost between two ranks on one machine, each pinned to a processor of its own, beside a memcpy of the
// bytes that a rank receives, and what they take from a rank that computes meanwhile on the same processor:
//   collective_bench
// starts the two ranks and prints rank 0's table. The least of the repetitions is what the code can do, the median what
// the machine let it do; processor time is the average of all, of the calling thread and of Gloo's.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "comm/island/gloo_collective.h"
#include "core/child_process.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

constexpr Milliseconds kTimeout{60'000};
constexpr int kRepetitions = 60;

double clock_seconds(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Cost {
    double least_seconds = 0;
    double median_seconds = 0;
    double caller_seconds = 0;   // of the processor
    double process_seconds = 0;  // likewise, of all threads
};

template <class Call>
Cost measure(Call call) {
    call();
    std::vector<double> seconds;
    const double caller = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    const double process = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < kRepetitions; ++i) {
        const double begin = clock_seconds(CLOCK_MONOTONIC);
        call();
        seconds.push_back(clock_seconds(CLOCK_MONOTONIC) - begin);
    }
    Cost cost{.caller_seconds = (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - caller) / kRepetitions,
              .process_seconds = (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - process) / kRepetitions};
    std::ranges::sort(seconds);
    cost.least_seconds = seconds.front();
    cost.median_seconds = seconds[seconds.size() / 2];
    return cost;
}

void print_cost(const char* name, std::int64_t whole_bytes, const Cost& cost) {
    fmt::print(
        "{:<16} {:>6.2f} MB  {:>8.3f} ms least {:>8.3f} median  {:>8.3f} ms caller {:>8.3f} other threads\n",
        name, 1e-6 * static_cast<double>(whole_bytes), 1e3 * cost.least_seconds, 1e3 * cost.median_seconds,
        1e3 * cost.caller_seconds, 1e3 * (cost.process_seconds - cost.caller_seconds));
}

int run_rank(const std::filesystem::path& directory, Rank rank) {
    auto rendezvous = make_file_rendezvous(directory, rank, 2);
    auto group = make_gloo_collective({.group = "tp", .rank = rank, .size = 2}, *rendezvous);
    constexpr std::int64_t kWidth = 512;
    for (const std::int64_t rows : {256, 512, 1024, 2048, 4096}) {
        std::vector<float> whole(static_cast<std::size_t>(rows * kWidth), 1.0f);
        std::vector<float> piece(whole.size() / 2, 1.0f);
        const auto bytes = static_cast<std::int64_t>(whole.size() * sizeof(float));
        const Cost copy =
            measure([&] { std::memcpy(whole.data(), piece.data(), piece.size() * sizeof(float)); });
        group->barrier(kTimeout);
        const Cost gather =
            measure([&] { group->all_gather_rows(view_of(piece), view_of(whole), rows, kTimeout); });
        const Cost scatter =
            measure([&] { group->reduce_scatter_rows(view_of(whole), view_of(piece), rows, kTimeout); });
        const Cost reduce = measure([&] { group->all_reduce(view_of(whole), kTimeout); });
        if (rank != Rank(0)) continue;
        print_cost("memcpy of half", bytes, copy);
        print_cost("all_gather", bytes, gather);
        print_cost("reduce_scatter", bytes, scatter);
        print_cost("all_reduce", bytes, reduce);
    }
    std::vector<float> one(1);
    const Cost smallest = measure([&] { group->all_reduce(view_of(one), kTimeout); });
    if (rank == Rank(0)) print_cost("all_reduce", 4, smallest);
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
