#include "comm/site/shared_slots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "core/cache.h"

namespace atl {

namespace {

constexpr std::size_t kSlotsPerWord = 64;

// At the beginning of the memory. A set bit is a slot that is taken: the writer sets it, the reader clears it.
struct Head {
    std::uint64_t nonce[2];
    std::array<std::atomic<std::uint64_t>, kSlots / kSlotsPerWord> taken;
};
constexpr std::size_t kHeadBytes = 4096;
static_assert(sizeof(Head) <= kHeadBytes && std::atomic<std::uint64_t>::is_always_lock_free);
constexpr std::size_t kBodiesBytes = kSlots * kSlotBytes;
constexpr std::size_t kMemoryBytes = kHeadBytes + kBodiesBytes;

// Neither side can take pages away that the other reads or writes.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Head& head_of(std::byte* memory) {
    return *reinterpret_cast<Head*>(memory);
}

std::byte* map(int descriptor, std::size_t begin, std::size_t bytes, int protection) {
    void* memory =
        ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, descriptor, static_cast<off_t>(begin));
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }

  private:
    const int number_;
};

bool is_of_this_kind(int descriptor) {
    struct stat file {};
    return ::fstat(descriptor, &file) == 0 && static_cast<std::size_t>(file.st_size) == kMemoryBytes &&
           ::fcntl(descriptor, F_GET_SEALS) == kSeals;
}

}  // namespace

std::unique_ptr<SharedSlots> SharedSlots::create() {
    std::unique_ptr<SharedSlots> slots(new SharedSlots);
    SharedSlotsOffer& offer = slots->offer_;
    offer.process = ::getpid();
    const int descriptor = ::memfd_create("atoll bodies", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    offer.descriptor = descriptor;
    const bool is_there = descriptor >= 0 && ::ftruncate(descriptor, kMemoryBytes) == 0 &&
                          ::fcntl(descriptor, F_ADD_SEALS, kSeals) == 0 &&
                          ::getrandom(offer.nonce, sizeof offer.nonce, 0) == sizeof offer.nonce;
    if (!is_there) return nullptr;
    slots->memory_ = map(descriptor, 0, kMemoryBytes, PROT_READ | PROT_WRITE);
    if (slots->memory_ == nullptr) return nullptr;
    std::memcpy(head_of(slots->memory_).nonce, offer.nonce, sizeof offer.nonce);
    return slots;
}

SharedSlots::~SharedSlots() {
    if (memory_ != nullptr) ::munmap(memory_, kMemoryBytes);
    if (offer_.descriptor >= 0) ::close(static_cast<int>(offer_.descriptor));
}

std::optional<std::uint32_t> SharedSlots::put(std::span<const std::byte> body) {
    if (body.size() > kSlotBytes) return {};
    auto& taken = head_of(memory_).taken;
    for (std::size_t word = 0; word < taken.size(); ++word) {
        const auto free =
            static_cast<std::size_t>(std::countr_one(taken[word].load(std::memory_order_acquire)));
        if (free == kSlotsPerWord) continue;
        const std::size_t slot = word * kSlotsPerWord + free;
        taken[word].fetch_or(std::uint64_t{1} << free, std::memory_order_relaxed);
        copy_past_cache(body, memory_ + kHeadBytes + slot * kSlotBytes);
        return static_cast<std::uint32_t>(slot);
    }
    return {};
}

std::shared_ptr<SharedSlotsView> SharedSlotsView::open(const SharedSlotsOffer& offer) {
    const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.descriptor);
    const Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (descriptor.number() < 0 || !is_of_this_kind(descriptor.number())) return nullptr;
    std::shared_ptr<SharedSlotsView> view(new SharedSlotsView);
    view->head_ = map(descriptor.number(), 0, kHeadBytes, PROT_READ | PROT_WRITE);
    view->bodies_ = map(descriptor.number(), kHeadBytes, kBodiesBytes, PROT_READ);
    if (view->head_ == nullptr || view->bodies_ == nullptr) return nullptr;
    if (std::memcmp(head_of(view->head_).nonce, offer.nonce, sizeof offer.nonce) != 0) return nullptr;
    return view;
}

SharedSlotsView::~SharedSlotsView() {
    if (head_ != nullptr) ::munmap(head_, kHeadBytes);
    if (bodies_ != nullptr) ::munmap(const_cast<std::byte*>(bodies_), kBodiesBytes);
}

std::optional<Payload> SharedSlotsView::take(const std::shared_ptr<SharedSlotsView>& view, std::uint32_t slot,
                                             std::size_t bytes) {
    if (slot >= kSlots || bytes > kSlotBytes) return {};
    const std::uint64_t bit = std::uint64_t{1} << (slot % kSlotsPerWord);
    auto& taken = head_of(view->head_).taken[slot / kSlotsPerWord];
    if ((taken.load(std::memory_order_acquire) & bit) == 0) return {};
    const std::byte* body = view->bodies_ + slot * kSlotBytes;
    fetch_into_cache({body, bytes});  // it is hashed next
    std::shared_ptr<const void> owner(
        body, [view, &taken, bit](const void*) { taken.fetch_and(~bit, std::memory_order_release); });
    return Payload(std::move(owner), {body, bytes});
}

}  // namespace atl
