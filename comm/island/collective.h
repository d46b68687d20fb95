// IslandCollective: what the ranks of one group say to each other over the fast links of an island. One object
// is one group on one link class, fixed at construction; its members are ranks 0 … size-1 *of the group*.
//
// Calls: every member makes the same calls in the same order with the same counts and dtypes (f32, f64).
// Rows: `rows` counts dimension 0 of the whole, and member r's piece is its rows [rows · r / n, rows · (r+1) / n), n
// members: the nearly equal ranges of layout's split(). A piece may be empty. The two buffers must not overlap, but for
// a piece that already lies in its place in the whole of all_gather_rows.
// Order of sums: fixed by the group's size, so equal inputs give equal bits, on every member and in every run.
// Maxima: NaN wins.
// Errors: CommError naming the rank waited for, the operation, and the time waited. After an error the object
// can't be used again: every later call throws the first error's text.
// Threads: one call at a time, but give_up() from any thread; different objects are independent. Buffers stay the
// caller's and are read and written only during the call.
// Cost, n members, b bytes of the whole: all_gather_rows and reduce_scatter_rows send b (n-1)/n in n-1 communication
// steps, all_reduce is one after the other; broadcast sends b from the root to each, gather and all_gather each
// member's bytes once to the root, then all to all.
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

    // Every member's `values` become the sum, or the maximum, of all members'.
    virtual void all_reduce(BufferView values, Milliseconds timeout) = 0;
    virtual void all_reduce_max(BufferView values, Milliseconds timeout) = 0;
    // Every member's `whole` becomes all members' pieces, in rank order.
    virtual void all_gather_rows(BufferView piece, BufferView whole, std::int64_t rows,
                                 Milliseconds timeout) = 0;
    // A member's `piece` becomes its rows of the sum of all members' `whole`, which stay as they are.
    virtual void reduce_scatter_rows(BufferView whole, BufferView piece, std::int64_t rows,
                                     Milliseconds timeout) = 0;
    // Every member's `values` become the root's.
    virtual void broadcast(BufferView values, Rank root, Milliseconds timeout) = 0;
    // Small strings of any lengths, in rank order; gather returns an empty vector on all but the root.
    virtual std::vector<std::string> gather(std::string_view bytes, Rank root, Milliseconds timeout) = 0;
    virtual std::vector<std::string> all_gather(std::string_view bytes, Milliseconds timeout) = 0;
    // Returns once every member has called it.
    virtual void barrier(Milliseconds timeout) = 0;

    // Ends the group's use on every member, with this reason in their errors: for a member that can't go on, so
    // that the others need not wait for their deadlines. Does nothing after an error.
    virtual void give_up(const std::string& why) = 0;
};

}  // namespace atl
