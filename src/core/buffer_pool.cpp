#include "core/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

namespace atl {

namespace {

constexpr std::size_t kSmallest = 4096;

// Eight sizes between a power of two and the next.
std::size_t rounded_up(std::size_t size) {
    const std::size_t step = std::bit_floor(std::max(size, kSmallest)) / 8;
    return (std::max(size, kSmallest) + step - 1) / step * step;
}

}  // namespace

struct BufferPool::Shelf {
    using Bytes = std::unique_ptr<std::byte[]>;

    std::mutex mutex;
    std::map<std::size_t, std::vector<Bytes>> free;

    Bytes take(std::size_t capacity) {
        {
            const std::scoped_lock lock(mutex);
            auto& same = free[capacity];
            if (!same.empty()) {
                Bytes bytes = std::move(same.back());
                same.pop_back();
                return bytes;
            }
        }
        return std::make_unique_for_overwrite<std::byte[]>(capacity);
    }
    void give_back(std::size_t capacity, Bytes bytes) {
        const std::scoped_lock lock(mutex);
        free[capacity].push_back(std::move(bytes));
    }
};

BufferPool::BufferPool() : shelf_(std::make_shared<Shelf>()) {}

BufferPool::Buffer BufferPool::take(std::size_t size) {
    const std::size_t capacity = rounded_up(size);
    std::byte* bytes = shelf_->take(capacity).release();  // owned by the deleter below
    std::shared_ptr<const void> owner(bytes, [shelf = shelf_, capacity, bytes](const void*) {
        shelf->give_back(capacity, std::unique_ptr<std::byte[]>(bytes));
    });
    return {std::move(owner), {bytes, size}};
}

}  // namespace atl
