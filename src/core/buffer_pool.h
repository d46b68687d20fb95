// Buffers that are used again when their last owner lets go of them: a frame's body costs no page faults and no
// zeroing once the first round is over.
//
// Memory: what comes back is kept, so the pool never holds more than was in use at once; sizes are rounded up by at
// most an eighth. Threads: any; the buffers may outlive the pool.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace atl {

class BufferPool {
  public:
    BufferPool();

    struct Buffer {
        std::shared_ptr<const void> owner;  // shared: a body lies in several places at once
        std::span<std::byte> bytes;         // uninitialised
    };
    Buffer take(std::size_t size);

  private:
    struct Shelf;
    std::shared_ptr<Shelf> shelf_;  // shared with the buffers, which go back to it
};

}  // namespace atl
