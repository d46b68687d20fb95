// Buffers that are used again once nobody holds them.
#include "core/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace atl {
namespace {

TEST(BufferPool, a_buffer_is_used_again_when_its_last_owner_has_let_go) {
    BufferPool pool;
    BufferPool::Buffer first = pool.take(100'000);
    const std::byte* const bytes = first.bytes.data();
    std::shared_ptr<const void> other_owner = first.owner;
    first = {};
    const BufferPool::Buffer second = pool.take(100'000);
    EXPECT_NE(second.bytes.data(), bytes) << "somebody still holds the first";
    other_owner.reset();
    EXPECT_EQ(pool.take(100'000).bytes.data(), bytes);
}

TEST(BufferPool, buffers_have_the_size_that_was_asked_for_and_serve_sizes_close_to_it) {
    BufferPool pool;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{66'560}}) {
        const BufferPool::Buffer buffer = pool.take(size);
        ASSERT_EQ(buffer.bytes.size(), size);
        std::ranges::fill(buffer.bytes, std::byte{7});
    }
    const std::byte* const bytes = pool.take(66'000).bytes.data();
    EXPECT_EQ(pool.take(66'560).bytes.data(), bytes);
    EXPECT_NE(pool.take(90'000).bytes.data(), bytes);
}

TEST(BufferPool, a_buffer_may_outlive_its_pool) {
    BufferPool::Buffer buffer;
    {
        BufferPool pool;
        buffer = pool.take(10'000);
    }
    std::ranges::fill(buffer.bytes, std::byte{1});
    EXPECT_EQ(buffer.bytes.back(), std::byte{1});
}

}  // namespace
}  // namespace atl
