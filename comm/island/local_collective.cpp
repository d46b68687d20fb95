#include "comm/island/local_collective.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "comm/island/ring.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

// What the members share: each call is two meetings, one when all have brought their buffers and one when
// all have read what they need.
class Room {
  public:
    Room(std::int32_t size, std::string group)
        : size(size), group(std::move(group)), buffers(size), strings(size), present(size, false) {}

    // Returns once all members have come. The last one to come opens the door.
    void meet(std::int32_t rank, const char* operation, Milliseconds timeout) {
        std::unique_lock lock(mutex);
        throw_if_failed();
        ATOLL_CHECK(!present[rank], "member {} of {} called twice at once", rank, group);
        present[rank] = true;
        const std::int64_t my_meeting = meeting;
        if (++arrived == size) {
            arrived = 0;
            std::fill(present.begin(), present.end(), false);
            ++meeting;
            door.notify_all();
            return;
        }
        const bool open =
            door.wait_for(lock, timeout, [&] { return meeting != my_meeting || !failure.empty(); });
        if (meeting != my_meeting) return;
        if (!open) {
            fail(fmt::format(
                "[island] {} in group {}: waited {} ms for rank {}; raise the collective's timeout "
                "if it is only slow",
                operation, group, timeout.count(), absent_ranks()));
        }
        throw_if_failed();
    }

    void leave(std::int32_t rank) {
        std::lock_guard lock(mutex);
        fail(fmt::format("[island] group {}: rank {} has left", group, rank));
    }

    const std::int32_t size;
    const std::string group;
    std::vector<BufferView> buffers;   // by rank, set before a meeting
    std::vector<std::string> strings;  // by rank, likewise

  private:
    void fail(std::string why) {
        if (failure.empty()) failure = std::move(why);
        door.notify_all();
    }
    void throw_if_failed() const {
        if (!failure.empty()) throw CommError(failure);
    }
    std::string absent_ranks() const {
        std::string names;
        for (std::int32_t r = 0; r < size; ++r) {
            if (!present[r]) names += (names.empty() ? "" : ", ") + std::to_string(r);
        }
        return names;
    }

    std::mutex mutex;
    std::condition_variable door;
    std::int32_t arrived = 0;
    std::int64_t meeting = 0;
    std::vector<bool> present;
    std::string failure;
};

template <class T>
void sum_chunk_in_ring_order(const std::vector<BufferView>& buffers, std::int32_t chunk, RingChunk range,
                             std::vector<std::byte>& sum_bytes) {
    const auto size = static_cast<std::int32_t>(buffers.size());
    sum_bytes.resize(static_cast<std::size_t>(range.size()) * sizeof(T));
    T* sum = reinterpret_cast<T*>(sum_bytes.data());
    const T* first = buffers[chunk].as<T>().data() + range.begin;
    std::copy(first, first + range.size(), sum);
    for (std::int32_t step = 1; step < size; ++step) {
        const T* next = buffers[ring_modulo(chunk + step, size)].as<T>().data() + range.begin;
        for (std::int64_t i = 0; i < range.size(); ++i) sum[i] += next[i];
    }
}

class LocalCollective final : public IslandCollective {
  public:
    LocalCollective(std::shared_ptr<Room> room, std::int32_t rank) : room_(std::move(room)), rank_(rank) {}
    ~LocalCollective() override { room_->leave(rank_); }

    Rank rank() const override { return Rank(rank_); }
    std::int32_t size() const override { return room_->size; }

    void all_reduce(BufferView values, Milliseconds timeout) override {
        room_->buffers[rank_] = values;
        room_->meet(rank_, "all_reduce", timeout);
        for (const BufferView& other : room_->buffers) ATOLL_CHECK_EQ(other.count, values.count);
        const RingChunk range = ring_chunk(values.count, room_->size, rank_);
        if (values.dtype == DType::f64) {
            sum_chunk_in_ring_order<double>(room_->buffers, rank_, range, sum_);
        } else {
            ATOLL_CHECK(values.dtype == DType::f32, "{}", name(values.dtype));
            sum_chunk_in_ring_order<float>(room_->buffers, rank_, range, sum_);
        }
        room_->meet(rank_, "all_reduce", timeout);
        const std::int64_t offset = range.begin * size_bytes(values.dtype);
        for (const BufferView& other : room_->buffers) {  // everyone's own chunk: no two write the same bytes
            std::ranges::copy(sum_, static_cast<std::byte*>(other.data) + offset);
        }
        room_->meet(rank_, "all_reduce", timeout);
    }

    void broadcast(BufferView values, Rank root, Milliseconds timeout) override {
        room_->buffers[rank_] = values;
        room_->meet(rank_, "broadcast", timeout);
        const BufferView& source = room_->buffers[root.value()];
        ATOLL_CHECK_EQ(source.bytes(), values.bytes());
        if (rank_ != root.value()) {
            std::copy_n(static_cast<const std::byte*>(source.data), values.bytes(),
                        static_cast<std::byte*>(values.data));
        }
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

  private:
    std::shared_ptr<Room> room_;  // shared by the members, who end in any order
    std::int32_t rank_;
    std::vector<std::byte> sum_;
};

}  // namespace

std::vector<std::unique_ptr<IslandCollective>> make_local_collectives(std::int32_t size, std::string group) {
    ATOLL_CHECK(size >= 1, "{} members", size);
    auto room = std::make_shared<Room>(size, std::move(group));
    std::vector<std::unique_ptr<IslandCollective>> members;
    for (std::int32_t rank = 0; rank < size; ++rank) {
        members.push_back(std::make_unique<LocalCollective>(room, rank));
    }
    return members;
}

}  // namespace atl
