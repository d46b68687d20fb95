// One rank of some random programs (support/random_ranks.h), placed and run by the real executor.
#pragma once

#include <algorithm>

#include "core/hash.h"
#include "core/random.h"
#include "engine/executor.h"

namespace atl::test {

class ProgramRank {
  public:
    ProgramRank(Program program_to_run, std::int32_t after_edge_distance, const ExecutorOptions& options)
        : program_(std::move(program_to_run)),
          placement_(place(program_, {.after_edge_distance = after_edge_distance})),
          memory_(program_, placement_),
          executor_(program_, memory_, options) {}

    // A step on random inputs; the output's digest.
    std::string run(std::uint64_t seed) {
        std::uint64_t stream = 0;
        for (const char* input : {"x", "y", "gamma"}) {
            const RandomStream random(seed,
                                      10 * static_cast<std::uint64_t>(program_.rank.value()) + stream++);
            std::uint64_t i = 0;
            for (float& value : memory_.view(input).as<float>())
                value = static_cast<float>(random.normal(i++));
        }
        executor_.run();
        Blake2b digest;
        digest.update(std::as_bytes(memory_.view("out").as<float>()));
        return digest.hex();
    }

    const Program& program() const { return program_; }
    const Executor& executor() const { return executor_; }

  private:
    Program program_;
    Placement placement_;
    ProgramMemory memory_;
    Executor executor_;
};

}  // namespace atl::test
