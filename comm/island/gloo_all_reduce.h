// Gloo's own all-reduce: the yardstick of this project's exchanges, never a part of them (it can't say which peer
// failed).
//
// Threads: one. Errors: CommError. Cost: the ring of gloo/allreduce.h, 2 (N-1)/N of the bytes each way.
#pragma once

#include <memory>
#include <span>

#include "comm/island/gloo_collective.h"

namespace atl {

class GlooMesh;

class GlooAllReduce {
  public:
    // Every rank calls it with the same group and size and a rendezvous to the same place.
    GlooAllReduce(const GlooOptions& options, Rendezvous& rendezvous);
    ~GlooAllReduce();

    // sum[i] = the sum of values[i] over the ranks.
    void run(std::span<const float> values, std::span<float> sum, Milliseconds timeout);

  private:
    class Context;
    std::unique_ptr<GlooMesh> mesh_;
    std::shared_ptr<Context> context_;  // shared with Gloo's options
};

}  // namespace atl
