// Hashes: XXH3 for frames and commits (fast, not against an adversary), BLAKE2b for states and files.
//
// Hex digests are lower case. Cost per core: XXH3 about memory speed, BLAKE2b about 1 GB/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace atl {

std::uint64_t xxh3_64(std::span<const std::byte> bytes);

struct Hash128 {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    auto operator<=>(const Hash128&) const = default;
    std::string hex() const;  // 32 digits
};

Hash128 xxh3_128(std::span<const std::byte> bytes);
Hash128 hash128_from_hex(const std::string& hex);  // throws CorruptDataError

// BLAKE2b-256 of a stream of bytes (RFC 7693).
class Blake2b {
  public:
    Blake2b();
    ~Blake2b();
    Blake2b(const Blake2b&) = delete;
    Blake2b& operator=(const Blake2b&) = delete;

    void update(std::span<const std::byte> bytes);
    std::string hex();  // 64 digits; ends the stream

  private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string blake2b_hex(std::span<const std::byte> bytes);

}  // namespace atl
