// One rank of a Gloo group, for tests that start several as processes:
//   island_member MEETING_DIRECTORY RANK SIZE TIMEOUT_MS SCENARIO
// Scenarios: "once" runs every collective, and "messages" sends between all pairs, and each prints a digest of the
// results; "forever" sums without end, and "exchanging" sends to and receives from both neighbours: they touch
// MEETING_DIRECTORY/begun after the first time, and print the error that ended it and the seconds it took from the call
// to the error; "silent" and "silent_messages" join
// and then call nothing.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "comm/island/gloo_collective.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/collective_digest.h"

namespace atl {
namespace {

void exchange_with_neighbours(PointToPoint& office, Milliseconds timeout) {
    static std::vector<float> out(100'000, 1.0f);
    static std::vector<float> in(100'000);
    const Rank right(ring_modulo(office.rank().value() + 1, office.size()));
    const Rank left(ring_modulo(office.rank().value() - 1, office.size()));
    office.post_receive(view_of(in), left);
    office.post_send(view_of(out), right);
    office.wait_receive(left, timeout);
    office.wait_send(right, timeout);
}

template <class Call>
void repeat_until_error(const std::filesystem::path& directory, Rank rank, Call call) {
    SystemClock clock;
    TimePoint called;
    try {
        for (bool first = true;; first = false) {
            called = clock.now();
            call();
            if (first && rank == Rank(0))
                make_system_file_system()->write_text_atomically(directory / "begun", "");
        }
    } catch (const CommError& error) {
        fmt::print("{:.3f} {}\n", seconds(clock.now() - called), error.what());
    }
}

int run(int argc, char** argv) {
    if (argc != 6) return 2;
    const std::filesystem::path directory = argv[1];
    const Rank rank(std::stoi(argv[2]));
    const std::int32_t size = std::stoi(argv[3]);
    const Milliseconds timeout(std::stoi(argv[4]));
    const std::string scenario = argv[5];
    auto rendezvous = make_file_rendezvous(directory, rank, size);
    const GlooOptions options{.group = "dp", .rank = rank, .size = size};
    if (scenario == "messages" || scenario == "exchanging" || scenario == "silent_messages") {
        auto office = make_gloo_point_to_point(options, *rendezvous);
        if (scenario == "messages") {
            fmt::print("{}\n", test::digest_of_messages(*office, timeout));
        } else if (scenario == "silent_messages") {
            ::pause();
        } else {
            repeat_until_error(directory, rank, [&] { exchange_with_neighbours(*office, timeout); });
        }
        return 0;
    }
    auto group = make_gloo_collective(options, *rendezvous);
    if (scenario == "once") {
        fmt::print("{}\n", test::digest_of_collectives(*group, timeout));
    } else if (scenario == "silent") {
        ::pause();
    } else {
        std::vector<float> values(1'000'000, 1.0f);
        repeat_until_error(directory, rank, [&] { group->all_reduce(view_of(values), timeout); });
    }
    return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
    return atl::run(argc, argv);
}
