// Copies past the processor's caches.
#include "core/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace atl {
namespace {

TEST(Cache, a_copy_past_it_is_a_copy_whatever_its_length_and_place) {
    std::vector<std::byte> from(10'000);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 255);
    for (const std::size_t count : {0, 1, 63, 64, 65, 255, 256, 1000, 9'000}) {
        for (const std::size_t misplaced : {0, 1, 15, 16, 63}) {
            std::vector<std::byte> to(count + 128, std::byte{255});
            copy_past_cache(std::span(from).subspan(misplaced, count), to.data() + misplaced);
            EXPECT_TRUE(
                std::equal(to.begin() + misplaced, to.begin() + misplaced + count, from.begin() + misplaced));
            EXPECT_EQ(std::ranges::count(to, std::byte{255}), 128) << "nothing beside it was written";
        }
    }
}

TEST(Cache, fetching_changes_nothing_and_reads_no_more_than_it_is_given) {
    const std::vector<std::byte> bytes(1000, std::byte{3});
    for (const std::size_t count : {0, 1, 64, 1000}) fetch_into_cache(std::span(bytes).first(count));
    EXPECT_EQ(std::ranges::count(bytes, std::byte{3}), 1000);
}

}  // namespace
}  // namespace atl
