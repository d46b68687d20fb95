#include "engine/program_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr std::int64_t kHugePageBytes = 2 * 1024 * 1024;
// As a float or double: a tiny number that no weight or gradient happens to be.
constexpr unsigned char kPattern = 0xA5;

std::size_t mapped_bytes(std::int64_t bytes) {
    return static_cast<std::size_t>((bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes);
}

}  // namespace

Arena::Arena(std::int64_t bytes) : bytes_(bytes) {
    void* memory =
        ::mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw WorldError(
            fmt::format("[engine] no memory for an arena of {:.1f} MB: {}; take a smaller "
                        "train.micro_batch or model",
                        static_cast<double>(bytes) * 1e-6, std::strerror(errno)));
    }
    data_ = static_cast<std::byte*>(memory);
    ::madvise(memory, mapped_bytes(bytes),
              MADV_HUGEPAGE);  // only an advice: without it steps are a little slower
}

Arena::~Arena() {
    ::munmap(data_, mapped_bytes(bytes_));
}

void Arena::fill() {
    std::memset(data_, kPattern, static_cast<std::size_t>(bytes_));
}

std::int64_t Arena::touched_bytes() const {
    std::int64_t end = bytes_;
    while (end > 0 && data_[end - 1] == std::byte{kPattern}) --end;
    return end;
}

ProgramMemory::ProgramMemory(const Program& program, const Placement& placement,
                             const ProgramMemoryOptions& options)
    : program_(program), placement_(placement), addresses_(program.values.size(), nullptr) {
    if (options.share_with != nullptr) share(options);
    for (const auto& [id, bytes] : placement.arena_bytes)
        if (!arenas_.contains(id)) make_arena(id, bytes, options);
    for (const Value& value : program.values) {
        const ValueView place = program.resolve(value.id);
        std::byte* base = addresses_[place.base.value()];
        if (base == nullptr) {
            base = arenas_.at(arena_of(program, value.id))->data() +
                   placement.value_offset_bytes[place.base.value()];
            addresses_[place.base.value()] = base;
        }
        addresses_[value.id.value()] = base + place.offset_elements * size_bytes(value.dtype);
    }
}

// Values of the shared arenas keep their addresses, wherever this placement would have put them.
void ProgramMemory::share(const ProgramMemoryOptions& options) {
    const auto is_shared = [&](Role role) {
        return role == Role::parameter || role == Role::state || (options.takes_over && role == Role::gradient);
    };
    for (const Value& value : program_.values) {
        if (value.view_of || !is_shared(value.role)) continue;
        const BufferView theirs = options.share_with->view(value.name);
        ATOLL_CHECK_EQ(theirs.bytes(), value.bytes(), "{}", value.name);
        addresses_[value.id.value()] = static_cast<std::byte*>(theirs.data);
    }
    for (const auto& [id, arena] : options.share_with->arenas_)
        if (is_shared(id.role)) arenas_[id] = arena;
    if (!options.takes_over) return;
    for (const auto& [id, arena] : options.share_with->own_arenas_)
        if (is_shared(id.role)) own_arenas_[id] = arena;
}

void ProgramMemory::make_arena(ArenaId id, std::int64_t bytes, const ProgramMemoryOptions& options) {
    ATOLL_CHECK(id.space == Space::device, "host arenas are not needed on a processor");
    if (options.share_with != nullptr && id.role == Role::activation) {
        const auto theirs = options.share_with->arenas_.find(id);
        if (theirs != options.share_with->arenas_.end() && theirs->second->bytes() >= bytes) {
            arenas_[id] = theirs->second;
            if (options.takes_over) own_arenas_[id] = theirs->second;
            return;
        }
    }
    const auto arena = std::make_shared<Arena>(bytes);
    if (options.measure) arena->fill();
    arenas_[id] = own_arenas_[id] = arena;
}

BufferView ProgramMemory::view(ValueId id) const {
    const Value& value = program_.value(id);
    return {addresses_[id.value()], element_count(value.shape), value.dtype, Device::cpu};
}

std::byte* ProgramMemory::scratch(OpId id) const {
    const std::int64_t offset = placement_.scratch_offset_bytes[id.value()];
    if (offset < 0) return nullptr;
    return arenas_.at({Role::activation, Space::device})->data() + offset;
}

std::int64_t ProgramMemory::placed_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [id, arena] : own_arenas_) bytes += arena->bytes();
    return bytes;
}

std::int64_t ProgramMemory::touched_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [id, arena] : own_arenas_) bytes += arena->touched_bytes();
    return bytes;
}

}  // namespace atl
