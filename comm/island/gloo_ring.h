// The two phases of the ring (comm/island/ring.h) over a mesh; internal to this folder.
//
// Chunks travel in segments, so that a segment is added up while the next ones are under way. Both ends of a connection
// cut alike. Memory: kStagedSegments segments of kSegmentBytes, and for reduce_scatter one row.
#pragma once

#include <vector>

#include "comm/island/combine.h"
#include "comm/island/gloo_mesh.h"
#include "core/buffer_view.h"

namespace atl {

// A buffer cut by rows into one chunk per member.
struct RingRows {
    BufferView values;
    std::int64_t rows = 0;

    std::int64_t row_bytes() const { return rows == 0 ? 0 : values.bytes() / rows; }
    // Where a chunk lies, in bytes.
    RingChunk chunk_bytes(std::int32_t size, std::int32_t chunk) const {
        const RingChunk range = ring_chunk(rows, size, chunk);
        return {range.begin * row_bytes(), range.end * row_bytes()};
    }
};

class GlooRing {
  public:
    explicit GlooRing(GlooMesh& mesh) : mesh_(mesh) {}

    // Chunk `rank` of `whole` becomes that of all members' combined; the other chunks hold parts of sums.
    void reduce_in_place(const MeshCall& call, Combination combination, const RingRows& whole);
    // The sum's chunk `rank` comes to lie in `piece`; `whole` stays as it is.
    void reduce_scatter(const MeshCall& call, const RingRows& whole, const BufferView& piece);
    // Each member's chunk `rank` of `whole` goes to all others.
    void all_gather(const MeshCall& call, const RingRows& whole);

  private:
    // What goes to the right neighbour while what comes from the left is awaited; bytes from the chunk's beginning.
    struct Transfer {
        std::int32_t sent_chunk = 0;
        RingChunk sent;
        std::int32_t received_chunk = 0;
        RingChunk received;
    };
    class Memory;

    using ChunkOfStep = std::int32_t (*)(std::int32_t rank, std::int32_t step, std::int32_t size);
    void plan(const RingRows& whole, std::int64_t cut_at_byte, ChunkOfStep sent_chunk);
    void reduce(const MeshCall& call, Combination combination, DType dtype, const Memory& memory);

    int right() const { return ring_modulo(mesh_.rank() + 1, mesh_.size()); }
    int left() const { return ring_modulo(mesh_.rank() - 1, mesh_.size()); }

    GlooMesh& mesh_;
    std::vector<Transfer> transfers_;  // of the phase under way, in order; each step has as many
    std::size_t transfers_per_step_ = 0;
    std::vector<std::byte> staging_;
    std::vector<std::byte> last_row_;
};

}  // namespace atl
