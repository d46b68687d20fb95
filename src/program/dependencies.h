// Dependencies of a program: which op must have finished before which other may start.
//
// A program means what running its ops one after another in list order means. So op b waits for op a that stands
// before it when both touch overlapping bytes of one base value and one of them writes: these are the data edges.
// Beside them stand the `after` edges and the order on each resource. Together they are happens-before, the
// partial order that executors keep and that memory reuse rests on: a has ended when b starts.
//
// Ops of a resource end in issue order. One starts when the one before it has ended, but a send or a receive starts,
// that is it is posted, as soon as the one before it is: its memory is then in use although that one may go on.
//
// Cost: edges O(accesses x accesses still visible on the same base); happens-before O(edges x resources) to build
// and O(1) to ask.
#pragma once

#include <array>
#include <vector>

#include "program/program.h"

namespace atl {

// A run of bytes of a value that is no view.
struct ByteRange {
    ValueId base;
    std::int64_t begin = 0;
    std::int64_t end = 0;  // one past the last

    bool overlaps(const ByteRange& other) const {
        return base == other.base && begin < other.end && other.begin < end;
    }
};

ByteRange byte_range(const Program& program, ValueId id);

// [op]: the ops it waits for because of data, sorted, without repetition and without what a chain of other data
// edges on the same bytes already implies.
std::vector<std::vector<OpId>> data_edges(const Program& program);

// Where an op stands: its resource, and its position among the ops of that resource.
struct IssuePlace {
    std::size_t resource = 0;
    std::int32_t position = 0;
};

class HappensBefore {
  public:
    // Every `after` edge of the program must point to an op further up in the list.
    explicit HappensBefore(const Program& program);

    bool operator()(OpId first, OpId second) const {
        const auto place = place_of(first);
        return place.position <= last_before(second)[place.resource];
    }
    IssuePlace place_of(OpId op) const { return places_[static_cast<std::size_t>(op.value())]; }
    // [resource]: position of the last op there that has ended when this one starts; -1 if none surely has.
    const std::array<std::int32_t, kResources>& last_before(OpId op) const {
        return last_before_[static_cast<std::size_t>(op.value())];
    }

  private:
    std::vector<IssuePlace> places_;
    std::vector<std::array<std::int32_t, kResources>> last_before_;
};

}  // namespace atl
