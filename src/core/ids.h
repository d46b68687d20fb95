// Strong identifiers: numbers that never convert to one another or from a bare integer.
//
// Cost: none over the integer inside. Ordered, hashable, printable with fmt.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>

namespace atl {

template <class Tag, class Integer = std::int64_t>
class StrongId {
  public:
    using integer_type = Integer;

    constexpr StrongId() = default;
    constexpr explicit StrongId(Integer value) : value_(value) {}

    constexpr Integer value() const { return value_; }
    constexpr StrongId next() const { return StrongId(value_ + 1); }
    constexpr auto operator<=>(const StrongId&) const = default;

  private:
    Integer value_ = 0;
};

using Rank = StrongId<struct RankTag, std::int32_t>;              // a process of an island
using SiteId = StrongId<struct SiteIdTag, std::int32_t>;          // position in the sorted list of sites
using Round = StrongId<struct RoundTag>;                          // one outer step of the whole run
using Attempt = StrongId<struct AttemptTag, std::int32_t>;        // one try of a round
using FragmentId = StrongId<struct FragmentIdTag, std::int32_t>;  // a set of tensors exchanged together
using Step = StrongId<struct StepTag>;  // inner optimizer steps done since the run began

// One life of a process that speaks for a site: random, never 0 for a living one, 0 where any will do.
using Incarnation = StrongId<struct IncarnationTag, std::uint64_t>;

}  // namespace atl

template <class Tag, class Integer>
struct std::hash<atl::StrongId<Tag, Integer>> {
    std::size_t operator()(atl::StrongId<Tag, Integer> id) const { return std::hash<Integer>()(id.value()); }
};

template <class Tag, class Integer>
struct fmt::formatter<atl::StrongId<Tag, Integer>> : fmt::formatter<Integer> {
    auto format(atl::StrongId<Tag, Integer> id, fmt::format_context& context) const {
        return fmt::formatter<Integer>::format(id.value(), context);
    }
};
