// A value of a program: one tensor-shaped piece of memory that ops read and write.
//
// Activations are written once and freed after their last use; frees are derived, never written by hand.
// Parameters, gradients and state live for the whole run and may be written by many ops in a fixed order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/ids.h"
#include "layout/box.h"

namespace atl {

using ValueId = StrongId<struct ValueIdTag, std::int32_t>;

enum class Role : std::uint8_t {
    parameter,   // compute weights
    gradient,    // sums over micro-batches, one per parameter
    state,       // optimizer moments, constant tables
    input,       // set by the host before the step: tokens, learning rate
    activation,  // placed in the arena, lives from its writer to its last reader
    output,      // read by the host after the step: losses, gradient norm
};

enum class Space : std::uint8_t { device, host };

std::string_view name(Role role);
std::string_view name(Space space);
std::optional<Role> role_from_name(std::string_view text);
std::optional<Space> space_from_name(std::string_view text);

// Which index range of which logical tensor a parameter, gradient or moment holds.
struct LogicalBox {
    std::string tensor;
    Box box;
    bool operator==(const LogicalBox&) const = default;
};

// A value that shares its bytes with part of another one: contiguous, from an element offset.
struct ValueView {
    ValueId base;
    std::int64_t offset_elements = 0;
    bool operator==(const ValueView&) const = default;
};

struct Value {
    ValueId id;
    std::string name;  // unique in its program
    Shape shape;       // of the piece on this rank
    DType dtype = DType::f32;
    Role role = Role::activation;
    Space space = Space::device;
    std::optional<LogicalBox> box;
    std::optional<ValueView> view_of;

    std::int64_t bytes() const { return element_count(shape) * size_bytes(dtype); }
    bool operator==(const Value&) const = default;
};

}  // namespace atl
