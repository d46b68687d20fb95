#include "metrics/tensorboard.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

namespace atl {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value & 1 ? (value >> 1) ^ 0x82f63b78u : value >> 1;
        table[i] = value;
    }
    return table;
}

std::span<const std::byte> as_bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
}

template <class T>
std::string fixed(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

// A record's checksum is stored rotated and offset, so that a CRC over data that holds CRCs stays useful.
std::string masked_crc(const std::string& bytes) {
    return fixed(std::rotr(crc32c(as_bytes(bytes)), 15) + 0xa282ead8u);
}

// The protobuf wire format: a key of field number and wire type, then the value.
enum class Wire : std::uint32_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}

std::string field(std::uint32_t number, Wire wire, const std::string& value) {
    const std::string length = wire == Wire::length ? varint(value.size()) : "";
    return varint(number << 3 | static_cast<std::uint32_t>(wire)) + length + value;
}

std::string event(const Clock& clock, const std::string& rest) {
    const double wall_seconds = static_cast<double>(clock.unix_ms()) / 1000;
    return field(1, Wire::fixed64, fixed(wall_seconds)) + rest;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
    static constexpr auto table = make_crc_table();
    std::uint32_t value = ~0u;
    for (const std::byte byte : bytes)
        value = table[(value ^ std::to_integer<std::uint32_t>(byte)) & 0xff] ^ (value >> 8);
    return ~value;
}

TensorBoardWriter::TensorBoardWriter(FileSystem& files, const std::filesystem::path& directory,
                                     const std::string& name, const Clock& clock)
    : clock_(clock) {
    files.create_directories(directory);
    file_ = files.create(directory / fmt::format("events.out.tfevents.{}.{}", clock.unix_ms() / 1000, name));
    append_record(event(clock_, field(3, Wire::length, "brain.Event:2")));
}

void TensorBoardWriter::scalar(const std::string& tag, std::int64_t step, double value) {
    const std::string summary_value =
        field(1, Wire::length, tag) + field(2, Wire::fixed32, fixed(static_cast<float>(value)));
    append_record(event(clock_, field(2, Wire::varint, varint(static_cast<std::uint64_t>(step))) +
                                    field(5, Wire::length, field(1, Wire::length, summary_value))));
}

void TensorBoardWriter::append_record(const std::string& event) {
    const std::string length = fixed(std::uint64_t{event.size()});
    const std::string record = length + masked_crc(length) + event + masked_crc(event);
    file_->append(as_bytes(record));
}

}  // namespace atl
