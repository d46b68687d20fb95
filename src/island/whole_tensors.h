// Whole tensors: how logical tensors that lie in boxes on the ranks of an island come together on the gateway, rank 0,
// and how they go back. What is outside an island (sites, checkpoints, export) sees whole tensors alone.
//
// Collective: every rank makes the same calls in the same order. dtypes: f32, f64, equal on all ranks. Elements move as
// they are, each from one holder to the gateway, and from the gateway to all its holders.
// Ownership: buffers are the caller's; one staging buffer of the largest box that was moved is kept.
// Threads: one caller. Errors: CommError. Cost: the tensor's bytes, less what the gateway holds itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/island/point_to_point.h"
#include "layout/layout.h"
#include "layout/reshard.h"

namespace atl {

class WholeTensors {
  public:
    // Every rank holds at most one box of a tensor. `messages` joins all ranks; null for an island of one.
    WholeTensors(Layout layout, Rank rank, PointToPoint* messages, Milliseconds timeout);

    // This rank's part of a tensor; nothing if it holds none.
    std::optional<Box> box(const std::string& tensor) const;
    bool holds_whole(const std::string& tensor) const;

    // `piece` is this rank's box, empty where it has none; `whole` is the gateway's, empty on the other ranks.
    void collect(const std::string& tensor, BufferView piece, BufferView whole);
    void distribute(const std::string& tensor, BufferView whole, BufferView piece);

  private:
    struct Side {
        BufferView values;
        std::optional<Box> box;
    };
    void carry_out(const std::vector<Transfer>& transfers, const Side& from, const Side& to);
    template <class T>
    void carry_out(const Transfer& transfer, const Side& from, const Side& to);

    Layout layout_;
    Rank rank_;
    PointToPoint* messages_;
    Milliseconds timeout_;
    std::map<std::string, std::vector<Transfer>> to_gateway_;
    std::map<std::string, std::vector<Transfer>> from_gateway_;
    std::vector<double> staging_;
};

}  // namespace atl
