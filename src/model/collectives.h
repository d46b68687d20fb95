// Makes the collective ops of one rank: group names, members, the link they ride, the bytes they move.
//
// Groups are named "tp", "dp" or "world" if they are that, otherwise after their sorted members ("ranks_0_3"); the
// same members always have the same name. "tp" rides link_intra. The others ride link_inter, so that a gradient on its
// way holds up no layer; where ranks share nothing but data parallelism they too ride link_intra.
#pragma once

#include <vector>

#include "model/parallel_shape.h"
#include "program/step_ops.h"

namespace atl {

class Collectives {
  public:
    // `builder` outlives this; groups are added to it as they are used.
    Collectives(StepBuilder& builder, const ParallelShape& parallel);

    // Sorted members of this rank's groups.
    const std::vector<Rank>& tensor_parallel() const { return tensor_parallel_; }
    const std::vector<Rank>& world() const { return world_; }

    // Equal `read` and `written`: in place.
    Op make(OpKind kind, const std::vector<Rank>& members, ValueId read, ValueId written);

  private:
    std::string name_of(const std::vector<Rank>& members) const;

    StepBuilder& builder_;
    std::vector<Rank> tensor_parallel_;
    std::vector<Rank> data_parallel_;
    std::vector<Rank> world_;
    bool plain_data_parallel_;
};

}  // namespace atl
