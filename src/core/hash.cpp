#include "core/hash.h"

#include <fmt/format.h>
#include <sodium.h>
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same bits, three times as fast where the processor has wider vectors
#endif

#include <array>
#include <charconv>

#include "core/error.h"

namespace atl {

std::uint64_t xxh3_64(std::span<const std::byte> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::string Hash128::hex() const {
    return fmt::format("{:016x}{:016x}", high, low);
}

Hash128 xxh3_128(std::span<const std::byte> bytes) {
    const auto hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.high64, hash.low64};
}

Hash128 hash128_from_hex(const std::string& hex) {
    Hash128 hash;
    const char* begin = hex.data();
    const bool ok = hex.size() == 32 && std::from_chars(begin, begin + 16, hash.high, 16).ptr == begin + 16 &&
                    std::from_chars(begin + 16, begin + 32, hash.low, 16).ptr == begin + 32;
    if (!ok) throw CorruptDataError(fmt::format("\"{}\" is not a hash of 32 hexadecimal digits", hex));
    return hash;
}

struct Blake2b::State {
    crypto_generichash_state stream;
};

Blake2b::Blake2b() : state_(std::make_unique<State>()) {
    crypto_generichash_init(&state_->stream, nullptr, 0, crypto_generichash_BYTES);
}
Blake2b::~Blake2b() = default;

void Blake2b::update(std::span<const std::byte> bytes) {
    crypto_generichash_update(&state_->stream, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
}

std::string Blake2b::hex() {
    std::array<unsigned char, crypto_generichash_BYTES> digest{};
    crypto_generichash_final(&state_->stream, digest.data(), digest.size());
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

std::string blake2b_hex(std::span<const std::byte> bytes) {
    Blake2b hash;
    hash.update(bytes);
    return hash.hex();
}

}  // namespace atl
