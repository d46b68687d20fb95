#include "comm/island/local_collective.h"

#include <algorithm>

#include "comm/island/combine.h"
#include "comm/island/local_room.h"
#include "comm/island/ring.h"
#include "core/check.h"

namespace atl {
namespace {

std::byte* bytes_at(const BufferView& view, std::int64_t element) {
    return static_cast<std::byte*>(view.data) + element * size_bytes(view.dtype);
}

void copy_bytes(const BufferView& from, std::byte* to) {
    std::copy_n(static_cast<const std::byte*>(from.data), from.bytes(), to);
}

class LocalCollective final : public IslandCollective {
  public:
    LocalCollective(std::shared_ptr<LocalRoom> room, std::int32_t rank)
        : room_(std::move(room)), rank_(rank) {}
    ~LocalCollective() override {
        room_->close(fmt::format("[island] group {}: rank {} has left", room_->group, rank_));
    }

    Rank rank() const override { return Rank(rank_); }
    std::int32_t size() const override { return room_->size; }

    void all_reduce(BufferView values, Milliseconds timeout) override {
        reduce_in_place("all_reduce", Combination::sum, values, timeout);
    }
    void all_reduce_max(BufferView values, Milliseconds timeout) override {
        reduce_in_place("all_reduce_max", Combination::maximum, values, timeout);
    }

    void all_gather_rows(BufferView piece, BufferView whole, std::int64_t rows,
                         Milliseconds timeout) override {
        bring("all_gather_rows", piece, timeout);
        const std::int64_t width = rows == 0 ? 0 : whole.count / rows;
        for (std::int32_t r = 0; r < size(); ++r) {
            const RingChunk range = ring_chunk(rows, size(), r);
            const BufferView& theirs = room_->buffers[r];
            ATOLL_CHECK_EQ(theirs.count, range.size() * width, "piece of rank {}", r);
            std::byte* place = bytes_at(whole, range.begin * width);
            if (theirs.data != place) copy_bytes(theirs, place);
        }
        room_->meet(rank_, "all_gather_rows", timeout);
    }

    void reduce_scatter_rows(BufferView whole, BufferView piece, std::int64_t rows,
                             Milliseconds timeout) override {
        bring("reduce_scatter_rows", whole, timeout);
        const std::int64_t width = rows == 0 ? 0 : whole.count / rows;
        const RingChunk range = ring_chunk(rows, size(), rank_);
        ATOLL_CHECK_EQ(piece.count, range.size() * width, "piece of rank {}", rank_);
        combine_own_chunk(Combination::sum, {range.begin * width, range.end * width}, whole,
                          bytes_at(piece, 0));
        room_->meet(rank_, "reduce_scatter_rows", timeout);
    }

    void broadcast(BufferView values, Rank root, Milliseconds timeout) override {
        bring("broadcast", values, timeout);
        const BufferView& source = room_->buffers[root.value()];
        ATOLL_CHECK_EQ(source.bytes(), values.bytes());
        if (rank_ != root.value()) copy_bytes(source, bytes_at(values, 0));
        room_->meet(rank_, "broadcast", timeout);
    }

    std::vector<std::string> gather(std::string_view bytes, Rank root, Milliseconds timeout) override {
        auto all = all_gather(bytes, timeout);
        return rank_ == root.value() ? all : std::vector<std::string>{};
    }

    std::vector<std::string> all_gather(std::string_view bytes, Milliseconds timeout) override {
        room_->strings[rank_] = bytes;
        room_->meet(rank_, "all_gather", timeout);
        std::vector<std::string> all = room_->strings;
        room_->meet(rank_, "all_gather", timeout);
        return all;
    }

    void barrier(Milliseconds timeout) override { room_->meet(rank_, "barrier", timeout); }

    void give_up(const std::string& why) override {
        room_->close(
            fmt::format("[island] group {}: stops because rank {} gave up: {}", room_->group, rank_, why));
    }

  private:
    void bring(const char* operation, const BufferView& values, Milliseconds timeout) {
        room_->buffers[rank_] = values;
        room_->meet(rank_, operation, timeout);
    }

    // Elements `range` of all members' buffers, in the ring's order.
    void combine_own_chunk(Combination combination, const RingChunk& range, const BufferView& own,
                           std::byte* result) {
        for (const BufferView& other : room_->buffers) ATOLL_CHECK_EQ(other.count, own.count);
        const std::int64_t bytes = range.size() * size_bytes(own.dtype);
        const auto addend = [&](std::int32_t position) {
            return bytes_at(room_->buffers[ring_addend(rank_, position, size())], range.begin);
        };
        std::copy_n(addend(0), bytes, result);
        for (std::int32_t i = 1; i < size(); ++i)
            combine(combination, own.dtype, result, result, addend(i), bytes);
    }

    void reduce_in_place(const char* operation, Combination combination, const BufferView& values,
                         Milliseconds timeout) {
        bring(operation, values, timeout);
        const RingChunk range = ring_chunk(values.count, size(), rank_);
        reduced_.resize(static_cast<std::size_t>(range.size() * size_bytes(values.dtype)));
        combine_own_chunk(combination, range, values, reduced_.data());
        room_->meet(rank_, operation, timeout);
        for (const BufferView& other : room_->buffers) {  // everyone's own chunk: no two write the same bytes
            std::ranges::copy(reduced_, bytes_at(other, range.begin));
        }
        room_->meet(rank_, operation, timeout);
    }

    std::shared_ptr<LocalRoom> room_;  // shared by the members, who end in any order
    std::int32_t rank_;
    std::vector<std::byte> reduced_;
};

}  // namespace

std::vector<std::unique_ptr<IslandCollective>> make_local_collectives(std::int32_t size, std::string group) {
    ATOLL_CHECK(size >= 1, "{} members", size);
    auto room = std::make_shared<LocalRoom>(size, std::move(group));
    std::vector<std::unique_ptr<IslandCollective>> members;
    for (std::int32_t rank = 0; rank < size; ++rank) {
        members.push_back(std::make_unique<LocalCollective>(room, rank));
    }
    return members;
}

}  // namespace atl
