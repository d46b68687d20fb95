#include "comm/island/gloo_ring.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::int64_t kSegmentBytes = 256 * 1024;
constexpr std::size_t kStagedSegments = 4;  // all fit into a core's second-level cache

// A run of bytes in memory that Gloo knows.
struct Place {
    UnboundBuffer* buffer;
    RingChunk bytes;  // in the buffer
    std::byte* data;
};

}  // namespace

// Where a member's own values lie, and where sums come to lie.
class GlooRing::Memory {
  public:
    // Sums overwrite the values.
    Memory(GlooMesh& mesh, const RingRows& whole)
        : rank_(mesh.rank()), size_(mesh.size()), rows_(whole), whole_(mesh, whole.values) {}

    // All sums lie in the piece, one after the other: each step's sums take the place of those sent in it. What an
    // unfinished chunk has more than others, one row, lies in `last_row`.
    Memory(GlooMesh& mesh, const RingRows& whole, const BufferView& piece, std::vector<std::byte>& last_row)
        : Memory(mesh, whole) {
        apart_ = true;
        common_bytes_ = whole.rows / mesh.size() * whole.row_bytes();
        last_row.resize(static_cast<std::size_t>(whole.row_bytes()));
        piece_ = Region(mesh, piece);
        last_row_ = Region(mesh, {last_row.data(), whole.row_bytes(), DType::u8, Device::cpu});
    }

    Place own(std::int32_t chunk, RingChunk bytes) const {
        return whole_.at(bytes, rows_.chunk_bytes(size_, chunk).begin);
    }
    Place sum(std::int32_t chunk, RingChunk bytes) const {
        if (!apart_) return own(chunk, bytes);
        if (chunk == rank_ || bytes.begin < common_bytes_) return piece_.at(bytes, 0);
        return last_row_.at(bytes, -common_bytes_);
    }

  private:
    struct Region {
        Region() = default;
        Region(GlooMesh& mesh, const BufferView& view)
            : data(static_cast<std::byte*>(view.data)), buffer(mesh.buffer_over(view.data, view.bytes())) {}

        Place at(RingChunk bytes, std::int64_t offset) const {
            return {&buffer, {bytes.begin + offset, bytes.end + offset}, data + bytes.begin + offset};
        }

        std::byte* data = nullptr;
        mutable UnboundBuffer buffer;  // Gloo's objects carry the state of transfers
    };

    std::int32_t rank_;
    std::int32_t size_;
    const RingRows& rows_;
    Region whole_;
    bool apart_ = false;
    std::int64_t common_bytes_ = 0;  // of every chunk
    Region piece_;
    Region last_row_;
};

// No segment lies across `cut_at_byte` of its chunk.
void GlooRing::plan(const RingRows& whole, std::int64_t cut_at_byte, ChunkOfStep sent_chunk) {
    const std::int32_t size = mesh_.size();
    const std::int64_t longest = (whole.rows + size - 1) / size * whole.row_bytes();
    transfers_.clear();
    for (std::int32_t step = 0; step + 1 < size; ++step) {
        const std::int32_t sent = sent_chunk(mesh_.rank(), step, size);
        const std::int32_t received = sent_chunk(left(), step, size);
        for (std::int64_t begin = 0, end = 0; begin < longest; begin = end) {
            end = std::min(begin + kSegmentBytes, begin < cut_at_byte ? cut_at_byte : longest);
            const auto part_of = [&](std::int32_t chunk) {
                const std::int64_t bytes = whole.chunk_bytes(size, chunk).size();
                return RingChunk{std::min(begin, bytes), std::min(end, bytes)};
            };
            transfers_.push_back({sent, part_of(sent), received, part_of(received)});
        }
    }
    transfers_per_step_ = transfers_.size() / static_cast<std::size_t>(size - 1);
}

// Segments may be empty; Gloo can't move nothing, and both ends know it.
void GlooRing::reduce(const MeshCall& call, Combination combination, DType dtype, const Memory& memory) {
    staging_.resize(kStagedSegments * kSegmentBytes);
    UnboundBuffer staging = mesh_.buffer_over(staging_.data(), std::ssize(staging_));
    const auto staged = [&](std::size_t i) {
        const auto begin = static_cast<std::int64_t>(i % kStagedSegments) * kSegmentBytes;
        return RingChunk{begin, begin + transfers_[i].received.size()};
    };
    const auto source = [&](std::size_t i) {
        const Transfer& t = transfers_[i];
        return i < transfers_per_step_ ? memory.own(t.sent_chunk, t.sent) : memory.sum(t.sent_chunk, t.sent);
    };
    std::size_t posted_receives = 0;
    std::size_t posted_sends = 0;
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
        for (; posted_receives < std::min(i + kStagedSegments, transfers_.size()); ++posted_receives) {
            if (staged(posted_receives).size() > 0)
                mesh_.receive(call, staging, left(), staged(posted_receives));
        }
        // What was summed in the step before can go.
        for (; posted_sends < std::min(i + transfers_per_step_, transfers_.size()); ++posted_sends) {
            const Place place = source(posted_sends);
            if (place.bytes.size() > 0) mesh_.send(call, *place.buffer, right(), place.bytes);
        }
        const Transfer& t = transfers_[i];
        if (t.received.size() > 0) mesh_.wait_received(call, staging, left());
        // The sum may take the place of what is sent.
        if (t.sent.size() > 0) mesh_.wait_sent(call, *source(i).buffer, right());
        combine(combination, dtype, memory.sum(t.received_chunk, t.received).data,
                staging_.data() + staged(i).begin, memory.own(t.received_chunk, t.received).data,
                t.received.size());
    }
}

void GlooRing::reduce_in_place(const MeshCall& call, Combination combination, const RingRows& whole) {
    plan(whole, 0, ring_summed_chunk);
    reduce(call, combination, whole.values.dtype, Memory(mesh_, whole));
}

void GlooRing::reduce_scatter(const MeshCall& call, const RingRows& whole, const BufferView& piece) {
    plan(whole, whole.rows / mesh_.size() * whole.row_bytes(), ring_summed_chunk);
    reduce(call, Combination::sum, whole.values.dtype, Memory(mesh_, whole, piece, last_row_));
}

void GlooRing::all_gather(const MeshCall& call, const RingRows& whole) {
    plan(whole, 0, ring_passed_chunk);
    const Memory memory(mesh_, whole);
    UnboundBuffer in = mesh_.buffer_over(whole.values.data, whole.values.bytes());
    for (const Transfer& t : transfers_) {
        const RingChunk bytes = memory.own(t.received_chunk, t.received).bytes;
        if (bytes.size() > 0) mesh_.receive(call, in, left(), bytes);
    }
    const auto wait_received = [&](const Transfer& t) {
        if (t.received.size() > 0) mesh_.wait_received(call, in, left());
    };
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
        // What came a step ago goes on now.
        if (i >= transfers_per_step_) wait_received(transfers_[i - transfers_per_step_]);
        const Place place = memory.own(transfers_[i].sent_chunk, transfers_[i].sent);
        if (place.bytes.size() > 0) mesh_.send(call, *place.buffer, right(), place.bytes);
    }
    for (std::size_t i = transfers_.size() - transfers_per_step_; i < transfers_.size(); ++i)
        wait_received(transfers_[i]);
    for (const Transfer& t : transfers_) {
        if (t.sent.size() > 0) mesh_.wait_sent(call, *memory.own(t.sent_chunk, t.sent).buffer, right());
    }
}

}  // namespace atl
