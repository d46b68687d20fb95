// Memory that two processes of one host share: one writes bodies into slots, the other reads them there and gives a slot
// back when the last owner of its body is gone. So a body is copied once, and by nobody else.
//
// The reader can open the writer's memory only where both belong to one user, or it to root: a writer who changes a
// body after the reader has checked it is not guarded against.
//
// Threads: put by one; bodies are given back from any. Memory: what is held at the same time, up to kSlots slots; pages
// stay with the writer for later bodies. Cost: one copy; a look at a word per 64 slots that are taken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "comm/site/frame.h"

namespace atl {

// How the reader finds the writer's memory, and knows that it is that.
struct SharedSlotsOffer {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::uint64_t nonce[2] = {};
};

inline constexpr std::size_t kSlotBytes =
    1 << 20;  // the largest packet; of others only the pages are there that they fill
inline constexpr std::size_t kSlots = 16384;

class SharedSlots {
  public:
    static std::unique_ptr<SharedSlots> create();  // nothing if the system can't
    ~SharedSlots();
    SharedSlots(const SharedSlots&) = delete;
    SharedSlots& operator=(const SharedSlots&) = delete;

    SharedSlotsOffer offer() const { return offer_; }
    // The slot that now holds the body; nothing if it is too long or all are taken.
    std::optional<std::uint32_t> put(std::span<const std::byte> body);

  private:
    SharedSlots() = default;

    SharedSlotsOffer offer_;
    std::byte* memory_ = nullptr;
};

class SharedSlotsView {
  public:
    static std::shared_ptr<SharedSlotsView> open(const SharedSlotsOffer& offer);  // nothing if it isn't there
    ~SharedSlotsView();
    SharedSlotsView(const SharedSlotsView&) = delete;
    SharedSlotsView& operator=(const SharedSlotsView&) = delete;

    // Nothing if no such body can be there. It keeps `view` alive.
    static std::optional<Payload> take(const std::shared_ptr<SharedSlotsView>& view, std::uint32_t slot,
                                       std::size_t bytes);

  private:
    SharedSlotsView() = default;

    std::byte* head_ = nullptr;
    const std::byte* bodies_ = nullptr;
};

}  // namespace atl
