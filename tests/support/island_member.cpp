// One rank of a Gloo group, for tests that start several as processes:
//   island_member MEETING_DIRECTORY RANK SIZE TIMEOUT_MS SCENARIO
// Scenarios: "once" runs every collective and prints a digest of all results; "forever" sums without end, touches
// MEETING_DIRECTORY/summing after the first sum, and prints the error that ended it and the seconds it took from
// the call to the error; "silent" joins, touches MEETING_DIRECTORY/joined and then calls nothing.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "comm/island/gloo_collective.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/hash.h"
#include "core/random.h"

namespace atl {
namespace {

std::string digest_of_all_calls(IslandCollective& group, Milliseconds timeout) {
    Blake2b digest;
    const RandomStream random(11, static_cast<std::uint64_t>(group.rank().value()));
    // Fewer elements than ranks, none, odd, and more than a few segments.
    for (const std::int64_t count : {0, 1, 2, 1'001, 300'007}) {
        std::vector<float> narrow(static_cast<std::size_t>(count));
        std::vector<double> wide(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) {
            wide[i] = random.normal(i);
            narrow[i] = static_cast<float>(wide[i]);
        }
        group.all_reduce(view_of(narrow), timeout);
        group.all_reduce(view_of(wide), timeout);
        digest.update(std::as_bytes(std::span(narrow)));
        digest.update(std::as_bytes(std::span(wide)));
    }
    std::vector<float> copied(1'000, static_cast<float>(group.rank().value()));
    group.broadcast(view_of(copied), Rank(group.size() - 1), timeout);
    digest.update(std::as_bytes(std::span(copied)));
    const std::string mine(static_cast<std::size_t>(group.rank().value()) * 7, 'a');
    for (const std::string& other : group.all_gather(mine, timeout)) {
        digest.update(std::as_bytes(std::span(other)));
    }
    const auto gathered = group.gather(mine, Rank(0), timeout);
    const bool right_count =
        static_cast<std::int32_t>(gathered.size()) == (group.rank() == Rank(0) ? group.size() : 0);
    group.barrier(timeout);
    return right_count ? digest.hex() : "gather returned the wrong count";
}

int run(int argc, char** argv) {
    if (argc != 6) return 2;
    const std::filesystem::path directory = argv[1];
    const Rank rank(std::stoi(argv[2]));
    const std::int32_t size = std::stoi(argv[3]);
    const Milliseconds timeout(std::stoi(argv[4]));
    const std::string scenario = argv[5];
    auto rendezvous = make_file_rendezvous(directory, rank, size);
    auto group = make_gloo_collective({.group = "dp", .rank = rank, .size = size}, *rendezvous);
    const auto files = make_system_file_system();
    if (scenario == "once") {
        fmt::print("{}\n", digest_of_all_calls(*group, timeout));
        return 0;
    }
    if (scenario == "silent") {
        files->write_text_atomically(directory / "joined", "");
        ::pause();
        return 0;
    }
    SystemClock clock;
    std::vector<float> values(1'000'000, 1.0f);
    TimePoint called;
    try {
        for (bool first = true;; first = false) {
            called = clock.now();
            group->all_reduce(view_of(values), timeout);
            if (first && rank == Rank(0)) files->write_text_atomically(directory / "summing", "");
        }
    } catch (const CommError& error) {
        fmt::print("{:.3f} {}\n", seconds(clock.now() - called), error.what());
    }
    return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
    return atl::run(argc, argv);
}
