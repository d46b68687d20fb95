// How ops that run at once slow each other down: the fluid overlap model.
//
// While two ops run together each proceeds at the rate 1 / slowdown, its own; alone, at rate 1. From the pair's
// measurements this gives back the time of both together, and it extends to runs of ops and to partial overlaps. An op
// that runs beside several others proceeds at the product of the rates. With one slowdown 2 - e for both sides, two ops
// take a + b - e min(a, b), where e is the overlap effectiveness (Wang et al., "DHelix", 2024).
//
// Classes are what slowdowns are measured for: a family of kernels on a resource. Unknown pairs have slowdown 1, and
// so has what was measured to be faster in company: that is noise.
// Plain data. Cost: O(1) a question.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "program/op.h"

namespace atl {

enum class OpFamily : std::uint8_t {
    matmul,
    attention,
    elementwise,  // norms, activations, rotary positions, losses: bound by memory
    optimizer,
    gather,   // collectives that only move bytes
    reduce,   // collectives that add
    message,  // sends and receives
};
inline constexpr std::size_t kOpFamilies = 7;

std::string_view name(OpFamily family);
std::optional<OpFamily> op_family_from_name(std::string_view text);
OpFamily family_of(OpKind kind);

struct OpClass {
    OpFamily family = OpFamily::matmul;
    Resource resource = Resource::compute;
    auto operator<=>(const OpClass&) const = default;
};
OpClass class_of(const Op& op);

// What two ops of these classes do to each other while they run at once.
struct PairSlowdown {
    OpClass first;
    OpClass second;
    double first_slowdown = 1;  // 1.2 = it takes 1.2 times as long as alone
    double second_slowdown = 1;
    std::int32_t samples = 0;
    bool operator==(const PairSlowdown&) const = default;
};

class OverlapModel {
  public:
    OverlapModel();  // nothing slows anything down
    explicit OverlapModel(const std::vector<PairSlowdown>& pairs);

    // Of an op of class `slowed` while one of class `other` runs on the same rank.
    double slowdown(const OpClass& slowed, const OpClass& other) const {
        return slowdowns_[index(slowed) * kClasses + index(other)];
    }
    bool slows_nothing() const { return slows_nothing_; }

  private:
    static constexpr std::size_t kClasses = kOpFamilies * kResources;
    static std::size_t index(const OpClass& op_class) {
        return static_cast<std::size_t>(op_class.family) * kResources +
               static_cast<std::size_t>(op_class.resource);
    }

    std::vector<double> slowdowns_;  // [slowed][other]
    bool slows_nothing_ = true;
};

}  // namespace atl
