// IslandCollective: what the ranks of one group say to each other over the fast links of an island. One object
// is one group on one link class, fixed at construction; its members are ranks 0 … size-1 *of the group*.
//
// Calls: every member makes the same calls in the same order with the same counts and dtypes (f32, f64).
// Order of sums: fixed by the group's size, so equal inputs give equal bits, on every member and in every run.
// Errors: CommError naming the rank waited for, the operation, and the time waited. After an error the object
// can't be used again: every later call throws the first error's text.
// Threads: one call at a time; different objects are independent. Buffers stay the caller's and are read and
// written only during the call.
// Cost, n members, b bytes: all_reduce sends 2 b (n-1)/n and takes 2 (n-1) communication steps, broadcast b
// from the root to each, gather and all_gather each member's bytes once to the root, then all to all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer_view.h"
#include "core/clock.h"
#include "core/ids.h"

namespace atl {

class IslandCollective {
  public:
    virtual ~IslandCollective() = default;

    virtual Rank rank() const = 0;
    virtual std::int32_t size() const = 0;

    // Every member's `values` become the sum of all members'.
    virtual void all_reduce(BufferView values, Milliseconds timeout) = 0;
    // Every member's `values` become the root's.
    virtual void broadcast(BufferView values, Rank root, Milliseconds timeout) = 0;
    // Small strings of any lengths, in rank order; gather returns an empty vector on all but the root.
    virtual std::vector<std::string> gather(std::string_view bytes, Rank root, Milliseconds timeout) = 0;
    virtual std::vector<std::string> all_gather(std::string_view bytes, Milliseconds timeout) = 0;
    // Returns once every member has called it.
    virtual void barrier(Milliseconds timeout) = 0;
};

}  // namespace atl
