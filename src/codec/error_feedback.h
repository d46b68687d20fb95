// Error feedback: what a codec loses in one round is added to the next, so that nothing is lost for good.
//
//   h = beta·e + Δ is what is encoded; at commit e ← h − q, with q what the others decode.
//   A contribution that was not committed leaves e as it was, so its Δ is lost with the round and no more.
//
// Flat fp32 spans of one fragment at one site. The residual is part of a checkpoint, and zero after a rejoin from
// another site's state. Dense codecs of 8 bits and more do without it. Not thread-safe; throws CheckError only.
// Memory: two fp32 copies of the fragment while a round is open, one between rounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace atl {

class ErrorFeedback {
  public:
    explicit ErrorFeedback(std::int64_t elements, float beta = 1.0F);

    // Begins a round: the values to encode, valid until the round ends.
    std::span<const float> begin(std::span<const float> delta);
    // Ends it: `decoded` is what the contribution's packets decode to.
    void commit(std::span<const float> decoded);
    void restore();  // not committed

    std::span<const float> residual() const { return residual_; }
    void set_residual(std::span<const float> residual);
    bool is_open() const { return is_open_; }

  private:
    float beta_;
    bool is_open_ = false;
    std::vector<float> residual_;  // e
    std::vector<float> pending_;   // h
};

}  // namespace atl
