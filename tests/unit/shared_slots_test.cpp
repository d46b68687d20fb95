// Bodies in memory that two processes of one host share.
#include "comm/site/shared_slots.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace atl {
namespace {

std::vector<std::byte> bytes(std::size_t count, int first) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<std::byte>(first + static_cast<int>(i % 251));
    return bytes;
}

bool holds(const std::optional<Payload>& body, const std::vector<std::byte>& expected) {
    return body && std::ranges::equal(body->bytes(), expected);
}

class SharedSlotsTest : public testing::Test {
  protected:
    std::optional<Payload> carried(const std::vector<std::byte>& body) {
        const auto slot = slots_->put(body);
        return slot ? SharedSlotsView::take(view_, *slot, body.size()) : std::nullopt;
    }

    std::unique_ptr<SharedSlots> slots_ = SharedSlots::create();
    std::shared_ptr<SharedSlotsView> view_ = SharedSlotsView::open(slots_->offer());
};

TEST_F(SharedSlotsTest, a_body_arrives_whole_whatever_its_length) {
    for (const std::size_t count : {1UL, 63UL, 64UL, 65UL, 4097UL, 100'001UL, kSlotBytes})
        EXPECT_TRUE(holds(carried(bytes(count, 7)), bytes(count, 7))) << count;
    EXPECT_FALSE(slots_->put(bytes(kSlotBytes + 1, 0)));
}

TEST_F(SharedSlotsTest, a_slot_is_not_written_again_before_the_last_owner_of_its_body_is_gone) {
    auto first = carried(bytes(1000, 1));
    const Payload kept = *first;
    first.reset();
    const auto second = carried(bytes(1000, 2));
    EXPECT_TRUE(holds(kept, bytes(1000, 1)));
    EXPECT_TRUE(holds(second, bytes(1000, 2)));
    EXPECT_NE(kept.bytes().data(), second->bytes().data());
}

TEST_F(SharedSlotsTest, a_slot_is_used_again_once_its_body_is_gone) {
    const std::byte* place = carried(bytes(1000, 1))->bytes().data();
    EXPECT_EQ(carried(bytes(1000, 2))->bytes().data(), place);
}

TEST_F(SharedSlotsTest, when_all_are_taken_there_is_none_until_one_is_given_back) {
    std::vector<std::optional<Payload>> held;
    for (std::size_t slot = 0; slot < kSlots; ++slot)
        held.push_back(carried(bytes(8, static_cast<int>(slot % 200))));
    EXPECT_FALSE(slots_->put(bytes(8, 0)));
    held[777].reset();
    const auto slot = slots_->put(bytes(8, 0));
    EXPECT_EQ(slot, 777U);
    EXPECT_TRUE(holds(held[778], bytes(8, 778 % 200)));
}

TEST_F(SharedSlotsTest, a_slot_that_holds_nothing_gives_no_body) {
    EXPECT_FALSE(SharedSlotsView::take(view_, 3, 8)) << "never written";
    EXPECT_FALSE(SharedSlotsView::take(view_, kSlots, 8));
    const auto slot = slots_->put(bytes(8, 0));
    EXPECT_FALSE(SharedSlotsView::take(view_, *slot, kSlotBytes + 1));
}

TEST_F(SharedSlotsTest, a_body_outlives_the_writer) {
    const auto body = carried(bytes(5000, 9));
    slots_.reset();
    view_.reset();
    EXPECT_TRUE(holds(body, bytes(5000, 9)));
}

TEST_F(SharedSlotsTest, only_the_memory_that_was_offered_is_opened) {
    SharedSlotsOffer other = slots_->offer();
    ++other.nonce[1];
    EXPECT_FALSE(SharedSlotsView::open(other)) << "another one at the same place";
    SharedSlotsOffer not_ours{.process = ::getpid(), .descriptor = 0, .nonce = {}};
    EXPECT_FALSE(SharedSlotsView::open(not_ours)) << "no memory of this kind";
    EXPECT_FALSE(SharedSlotsView::open({})) << "no offer";
}

// The writer is another process, which is killed before the body is read.
TEST(SharedSlots, what_a_dead_process_has_written_can_still_be_read) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto slots = SharedSlots::create();
        const SharedSlotsOffer offer = slots->offer();
        const bool is_told =
            slots->put(bytes(3000, 5)) == 0U && ::write(pipe[1], &offer, sizeof offer) == sizeof offer;
        if (is_told) ::pause();
        ::_exit(1);
    }
    SharedSlotsOffer offer;
    ASSERT_EQ(::read(pipe[0], &offer, sizeof offer), static_cast<ssize_t>(sizeof offer));
    const auto view = SharedSlotsView::open(offer);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_TRUE(view);
    EXPECT_TRUE(holds(SharedSlotsView::take(view, 0, 3000), bytes(3000, 5)));
    EXPECT_FALSE(SharedSlotsView::open(offer)) << "there is nobody to have it from";
    ::close(pipe[0]);
    ::close(pipe[1]);
}

}  // namespace
}  // namespace atl
