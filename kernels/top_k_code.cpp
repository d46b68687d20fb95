#include "kernels/top_k_code.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "kernels/dispatch.h"
#include "kernels/half_precision.h"
#include "kernels/top_k_code_steps.h"

namespace atl::kernels {
namespace {

// The record of one tile.
struct Record {
    Record(std::int64_t kept, std::int64_t tile_elements)
        : k(top_k_kept(kept, tile_elements)),
          index_bits(top_k_index_bits(tile_elements)),
          code_bytes((2 * k + 7) / 8),
          bytes(top_k_tile_bytes(kept, tile_elements)) {}

    std::int64_t k, index_bits, code_bytes, bytes;
};

// Calls work(record, first value, values, first byte) for the tiles that hold values [first, last).
template <class Work>
void for_each_tile(std::int64_t kept, std::int64_t elements, std::int64_t first, std::int64_t last,
                   const Work& work) {
    const Record whole(kept, kTopKTile);
    for (std::int64_t tile = first / kTopKTile; tile * kTopKTile < last; ++tile) {
        const std::int64_t begin = tile * kTopKTile;
        const std::int64_t count = std::min(kTopKTile, elements - begin);
        work(count == kTopKTile ? whole : Record(kept, count), begin, count, tile * whole.bytes);
    }
}

std::uint16_t read_u16(const std::uint8_t* bytes) {
    return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}
void write_u16(std::uint16_t value, std::uint8_t* bytes) {
    bytes[0] = static_cast<std::uint8_t>(value);
    bytes[1] = static_cast<std::uint8_t>(value >> 8);
}

// A string of small numbers, the first in the lowest bits of the first byte.
class BitWriter {
  public:
    explicit BitWriter(std::uint8_t* to) : to_(to) {}
    void add(std::uint32_t value, std::int64_t width) {
        waiting_ |= static_cast<std::uint64_t>(value) << bits_;
        for (bits_ += width; bits_ >= 8; bits_ -= 8, waiting_ >>= 8)
            *to_++ = static_cast<std::uint8_t>(waiting_);
    }
    void finish() {
        if (bits_ > 0) *to_ = static_cast<std::uint8_t>(waiting_);
    }

  private:
    std::uint8_t* to_;
    std::uint64_t waiting_ = 0;
    std::int64_t bits_ = 0;
};

class BitReader {
  public:
    explicit BitReader(const std::uint8_t* from) : from_(from) {}
    std::uint32_t next(std::int64_t width) {
        for (; bits_ < width; bits_ += 8) waiting_ |= static_cast<std::uint64_t>(*from_++) << bits_;
        const auto value = static_cast<std::uint32_t>(waiting_ & ((std::uint64_t{1} << width) - 1));
        waiting_ >>= width;
        bits_ -= width;
        return value;
    }

  private:
    const std::uint8_t* from_;
    std::uint64_t waiting_ = 0;
    std::int64_t bits_ = 0;
};

// The kept values of a tile, from their indices.
bool write_record(const Record& record, const float* values, const std::int32_t* indices,
                  std::uint8_t* bytes) {
    double sum = 0;
    for (std::int64_t i = 0; i < record.k; ++i) sum += std::abs(static_cast<double>(values[indices[i]]));
    const double middle = sum / static_cast<double>(record.k);
    std::array<double, 2> class_sum{};
    std::array<std::int64_t, 2> class_size{};
    BitWriter codes(bytes + 4);
    BitWriter places(bytes + 4 + record.code_bytes);
    for (std::int64_t i = 0; i < record.k; ++i) {
        const float value = values[indices[i]];
        const double magnitude = std::abs(static_cast<double>(value));
        const std::uint32_t upper = magnitude > middle ? 1 : 0;
        class_sum[upper] += magnitude;
        ++class_size[upper];
        codes.add(upper | (std::signbit(value) ? 2U : 0U), 2);
        places.add(static_cast<std::uint32_t>(indices[i]), record.index_bits);
    }
    codes.finish();
    places.finish();
    std::array<float, 2> means{};
    for (std::size_t i = 0; i < 2; ++i) {
        if (class_size[i] > 0)
            means[i] = static_cast<float>(class_sum[i] / static_cast<double>(class_size[i]));
    }
    std::array<std::uint16_t, 2> rounded;
    bf16_encode(means, rounded, InstructionSet::baseline);
    write_u16(rounded[0], bytes);
    write_u16(rounded[1], bytes + 2);
    return std::max(rounded[0], rounded[1]) < 0x7F80;
}

// Calls take(index in the tile, value) for each kept value.
template <class Take>
void read_record(const Record& record, const std::uint8_t* bytes, const Take& take) {
    const std::array<std::uint16_t, 2> rounded{read_u16(bytes), read_u16(bytes + 2)};
    std::array<float, 2> means;
    bf16_decode(rounded, means, InstructionSet::baseline);
    const std::array<float, 4> table{means[0], means[1], -means[0], -means[1]};
    BitReader codes(bytes + 4);
    BitReader places(bytes + 4 + record.code_bytes);
    for (std::int64_t i = 0; i < record.k; ++i) {
        const float value = table[codes.next(2)];
        take(static_cast<std::int64_t>(places.next(record.index_bits)), value);
    }
}

void check_records(const TopKRecords& from) {
    ATOLL_CHECK(from.kept >= 1 && from.kept <= kTopKTile, "{} of {} values", from.kept, kTopKTile);
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(from.records.size()), top_k_bytes(from.kept, from.elements));
}

// Calls take(place, value) for each kept value that lies at `place` of the `count` wanted ones.
template <class Take>
void for_each_wanted(const TopKRecords& from, std::int64_t count, const Take& take) {
    check_records(from);
    ATOLL_CHECK(from.first >= 0 && count <= from.elements - from.first, "values {} to {} of {}", from.first,
                from.first + count, from.elements);
    for_each_tile(from.kept, from.elements, from.first, from.first + count,
                  [&](const Record& record, std::int64_t begin, std::int64_t elements, std::int64_t byte) {
                      read_record(record, from.records.data() + byte, [&](std::int64_t index, float value) {
                          const std::int64_t place = begin + index - from.first;
                          if (index < elements && place >= 0 && place < count)
                              take(static_cast<std::size_t>(place), value);
                      });
                  });
}

}  // namespace

bool top_k_encode(std::int64_t kept, std::span<const float> values, std::span<std::uint8_t> records,
                  InstructionSet set) {
    const auto elements = static_cast<std::int64_t>(values.size());
    check_records({kept, elements, records});
    bool encodable = true;
    std::array<std::int32_t, kTopKTile> indices;
    for_each_tile(kept, elements, 0, elements,
                  [&](const Record& record, std::int64_t begin, std::int64_t count, std::int64_t byte) {
                      bool finite = false;
                      const float* tile = values.data() + begin;
                      dispatch(TopKSelect{tile, count, record.k, indices.data(), &finite}, set);
                      encodable = finite && encodable &&
                                  write_record(record, tile, indices.data(), records.data() + byte);
                  });
    return encodable;
}

void top_k_decode(const TopKRecords& from, std::span<float> values) {
    std::ranges::fill(values, 0.0F);
    for_each_wanted(from, static_cast<std::int64_t>(values.size()),
                    [&](std::size_t place, float value) { values[place] = value; });
}

void top_k_decode_add(const TopKRecords& from, float weight, std::span<float> accumulator) {
    for_each_wanted(from, static_cast<std::int64_t>(accumulator.size()),
                    [&](std::size_t place, float value) { accumulator[place] += weight * value; });
}

bool top_k_valid(const TopKRecords& records) {
    check_records(records);
    bool valid = true;
    for_each_tile(records.kept, records.elements, 0, records.elements,
                  [&](const Record& record, std::int64_t, std::int64_t elements, std::int64_t byte) {
                      const std::uint8_t* bytes = records.records.data() + byte;
                      valid = valid && std::max(read_u16(bytes), read_u16(bytes + 2)) < 0x7F80;
                      std::int64_t before = -1;
                      read_record(record, bytes, [&](std::int64_t index, float) {
                          valid = valid && index > before && index < elements;
                          before = index;
                      });
                  });
    return valid;
}

}  // namespace atl::kernels
