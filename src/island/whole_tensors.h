// Whole tensors: how logical tensors that lie in boxes on the ranks of an island come together on the gateway, rank 0,
// and how they go back. What is outside an island (sites, checkpoints, export) sees whole tensors alone.
//
// Collective: every rank makes the same calls in the same order. dtypes: f32, f64, equal on all ranks. Elements move as
// they are, each from one holder to the gateway, and from the gateway to all its holders.
// Ownership: buffers are the caller's; one staging buffer of the largest box that was moved is kept.
// Threads: one caller. Errors: CommError. Cost: the tensor's bytes, less what the gateway holds itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/island/point_to_point.h"
#include "layout/layout.h"
#include "layout/reshard.h"

namespace atl {

// A part of a tensor in memory, row-major.
struct BoxView {
    Box box;
    BufferView values;
};

class WholeTensors {
  public:
    // `messages` joins all ranks; null for an island of one.
    WholeTensors(Layout layout, Rank rank, PointToPoint* messages, Milliseconds timeout);

    // `pieces` are this rank's parts of the tensor, together all that the layout gives it; `whole` is the gateway's and
    // empty on the other ranks.
    void collect(const std::string& tensor, const std::vector<BoxView>& pieces, BufferView whole);
    void distribute(const std::string& tensor, BufferView whole, const std::vector<BoxView>& pieces);

  private:
    void carry_out(const std::vector<Transfer>& transfers, const std::vector<BoxView>& from,
                   const std::vector<BoxView>& to);
    template <class T>
    void carry_out(const Transfer& transfer, const std::vector<BoxView>& from,
                   const std::vector<BoxView>& to);
    std::vector<BoxView> as_piece(const std::string& tensor, BufferView whole) const;

    Layout layout_;
    Rank rank_;
    PointToPoint* messages_;
    Milliseconds timeout_;
    std::map<std::string, std::vector<Transfer>> to_gateway_;
    std::map<std::string, std::vector<Transfer>> from_gateway_;
    std::vector<double> staging_;
};

}  // namespace atl
