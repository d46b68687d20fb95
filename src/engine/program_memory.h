// The memory of a program: one arena per (role, space) as its placement says, allocated once, 64-byte aligned,
// with huge pages advised. Addresses never change.
//
// A second program of the same rank (evaluation, or another order of the same step) shares the first one's parameters
// and state by name, and its activations' arena where that is large enough; the two must not run at the same time. One
// that takes the first one's place also takes over its arenas, gradients included.
// Ownership: arenas are shared between the memories that use them; views given out must not outlive those.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer_view.h"
#include "program/placement.h"
#include "program/program.h"

namespace atl {

// Bytes from the system, zeroed by it, given back with the object.
class Arena {
  public:
    explicit Arena(std::int64_t bytes);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    std::byte* data() const { return data_; }
    std::int64_t bytes() const { return bytes_; }
    // Measuring: fill() writes a pattern over the whole arena, touched_bytes() is one past the highest byte that
    // no longer holds it.
    void fill();
    std::int64_t touched_bytes() const;

  private:
    std::byte* data_ = nullptr;
    std::int64_t bytes_ = 0;
};

class ProgramMemory;

struct ProgramMemoryOptions {
    bool measure = false;                       // fill the arenas, so that touched_bytes() means something
    const ProgramMemory* share_with = nullptr;  // whose parameters, state and activation arena to use
    bool takes_over = false;                    // the other memory is about to end, and this one counts its arenas
};

class ProgramMemory {
  public:
    // Program and placement must outlive the memory.
    ProgramMemory(const Program& program, const Placement& placement,
                  const ProgramMemoryOptions& options = {});

    BufferView view(ValueId id) const;
    BufferView view(const std::string& name) const { return view(program_.find(name)); }
    std::byte* scratch(OpId id) const;  // null for an op without scratch

    // Sums over the arenas this memory made itself.
    std::int64_t placed_bytes() const;
    std::int64_t touched_bytes() const;

  private:
    void share(const ProgramMemoryOptions& options);
    void make_arena(ArenaId id, std::int64_t bytes, const ProgramMemoryOptions& options);

    const Program& program_;
    const Placement& placement_;
    std::map<ArenaId, std::shared_ptr<Arena>> own_arenas_;  // shared with memories that share_with this one
    std::map<ArenaId, std::shared_ptr<Arena>> arenas_;      // own ones and borrowed ones
    std::vector<std::byte*> addresses_;                     // [value]
};

}  // namespace atl
