#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kPrefixBytes = 8;                   // header length, u64
constexpr std::int64_t kLargestHeaderBytes = 100'000'000;  // the reference reader's limit
constexpr std::int64_t kChunkElements = 1 << 18;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& problem) {
    throw CorruptDataError(fmt::format("[safetensors] {}: {}", path.string(), problem));
}

// Bytes per element, 0 for a dtype this program has never heard of.
std::int64_t element_bytes(const std::string& dtype) {
    static const std::map<std::string, std::int64_t> sizes = {
        {"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"F16", 2},
        {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
    const auto found = sizes.find(dtype);
    return found == sizes.end() ? 0 : found->second;
}

float from_bf16(std::uint16_t code) {
    return std::bit_cast<float>(std::uint32_t{code} << 16);
}

float from_f16(std::uint16_t code) {
    const std::uint32_t sign = (code & 0x8000u) << 16;
    const std::uint32_t exponent = (code >> 10) & 0x1f;
    const std::uint32_t fraction = code & 0x3ff;
    if (exponent == 0) {  // zero and subnormals: fraction · 2^-24, exact in f32
        const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
    }
    const std::uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + 127 - 15;
    return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

template <class Stored, class Convert>
void read_converted(const ReadableFile& file, std::int64_t offset_bytes, std::span<float> values,
                    Convert convert) {
    std::vector<Stored> buffer(std::min<std::size_t>(kChunkElements, values.size()));
    while (!values.empty()) {
        const auto chunk = std::span(buffer).first(std::min(buffer.size(), values.size()));
        file.read(offset_bytes, std::as_writable_bytes(chunk));
        std::transform(chunk.begin(), chunk.end(), values.begin(), convert);
        offset_bytes += static_cast<std::int64_t>(chunk.size_bytes());
        values = values.subspan(chunk.size());
    }
}

Json parse_object(const std::string& text, const std::filesystem::path& path, const char* what) {
    Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) fail(path, fmt::format("{} is not a JSON object", what));
    return json;
}

// The header's JSON, and where the values begin.
std::pair<Json, std::int64_t> read_header(const ReadableFile& file, const std::filesystem::path& path) {
    if (file.size_bytes() < kPrefixBytes) fail(path, "too short for a safetensors file");
    std::uint64_t header_bytes = 0;
    file.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
    const auto limit = std::min(kLargestHeaderBytes, file.size_bytes() - kPrefixBytes);
    if (header_bytes > static_cast<std::uint64_t>(limit))
        fail(path, fmt::format("a header of {} bytes in a file of {}: truncated, or not a safetensors file",
                               header_bytes, file.size_bytes()));
    std::string text(header_bytes, '\0');
    file.read(kPrefixBytes, std::as_writable_bytes(std::span(text)));
    return {parse_object(text, path, "the header"), kPrefixBytes + static_cast<std::int64_t>(header_bytes)};
}

// The product of the extents, or nothing when one is negative or the product is beyond any file.
std::optional<std::int64_t> checked_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const auto extent : shape)
        if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
    return count;
}

// Of a tensor's values, from the first byte after the header.
struct ByteRange {
    std::string tensor;
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

std::pair<SafetensorsReader::Entry, ByteRange> parse_entry(const std::string& name, const Json& json,
                                                           const std::filesystem::path& path,
                                                           std::int64_t values_begin, std::int64_t file_bytes) {
    SafetensorsReader::Entry entry;
    std::int64_t begin = 0, end = 0;
    try {
        json.at("shape").get_to(entry.shape);
        json.at("dtype").get_to(entry.dtype);
        begin = json.at("data_offsets").at(0);
        end = json.at("data_offsets").at(1);
    } catch (const Json::exception& error) {
        fail(path, fmt::format("tensor {}: {}", name, error.what()));
    }
    if (begin < 0 || end < begin) fail(path, fmt::format("tensor {}: bytes {} to {}", name, begin, end));
    if (end > file_bytes - values_begin)
        fail(path, fmt::format("tensor {} ends at byte {}, the file at {}: truncated", name,
                               values_begin + end, file_bytes));
    const std::int64_t size = element_bytes(entry.dtype);
    const auto count = checked_count(entry.shape);
    if (!count || (size != 0 && ((end - begin) % size != 0 || (end - begin) / size != *count)))
        fail(path, fmt::format("tensor {}: {} bytes don't hold [{}] of {}", name, end - begin,
                               fmt::join(entry.shape, ", "), entry.dtype));
    entry.file = path;
    entry.offset_bytes = values_begin + begin;
    return {entry, {name, begin, end}};
}

// The format's rule: every byte of the values belongs to exactly one tensor.
void check_byte_ranges(std::vector<ByteRange> ranges, std::int64_t values_bytes, const std::filesystem::path& path) {
    std::ranges::sort(ranges, {}, [](const ByteRange& range) { return std::pair(range.begin, range.end); });
    std::int64_t next = 0;
    std::string before = "the header";
    for (const ByteRange& range : ranges) {
        if (range.begin != next)
            fail(path, fmt::format("tensor {} begins at byte {} of the values, {} ends at {}: data_offsets must neither "
                                   "overlap nor leave holes",
                                   range.tensor, range.begin, before, next));
        next = range.end;
        before = range.tensor;
    }
    if (next != values_bytes)
        fail(path, fmt::format("{} ends at byte {} of the values, the file at {}", before, next, values_bytes));
}

}  // namespace

SafetensorsReader::SafetensorsReader(const FileSystem& files, const std::filesystem::path& path) {
    const auto single = path / "model.safetensors";
    const auto index = path / "model.safetensors.index.json";
    if (path.extension() == ".safetensors") {
        add_file(files, path);
    } else if (path.extension() == ".json") {
        add_index(files, path);
    } else if (files.exists(single)) {
        add_file(files, single);
    } else if (files.exists(index)) {
        add_index(files, index);
    } else {
        throw UserError(fmt::format("[safetensors] {} holds neither {} nor {}", path.string(),
                                    single.filename().string(), index.filename().string()));
    }
}

void SafetensorsReader::add_file(const FileSystem& files, const std::filesystem::path& path) {
    auto file = files.open(path);
    const auto [header, values_begin] = read_header(*file, path);
    std::vector<ByteRange> ranges;
    for (const auto& [name, json] : header.items()) {
        if (name == "__metadata__") continue;
        auto [entry, range] = parse_entry(name, json, path, values_begin, file->size_bytes());
        ranges.push_back(std::move(range));
        if (!tensors_.emplace(name, std::move(entry)).second)
            fail(path, fmt::format("tensor {} stands in another file too", name));
    }
    check_byte_ranges(std::move(ranges), file->size_bytes() - values_begin, path);
    files_.emplace(path, std::move(file));
}

void SafetensorsReader::add_index(const FileSystem& files, const std::filesystem::path& path) {
    const Json json = parse_object(files.read_text(path), path, "the index");
    const auto weights = json.find("weight_map");
    if (weights == json.end() || !weights->is_object()) fail(path, "no weight_map");
    for (const auto& [name, file] : weights->items()) {
        if (!file.is_string()) fail(path, fmt::format("tensor {}: no file name", name));
        const auto shard = path.parent_path() / file.get<std::string>();
        if (!files_.contains(shard)) add_file(files, shard);
        if (!tensors_.contains(name))
            fail(shard, fmt::format("no tensor {}, which the index places here", name));
    }
}

void SafetensorsReader::read(const std::string& name, std::span<float> values) const {
    const auto found = tensors_.find(name);
    ATOLL_CHECK(found != tensors_.end(), "no tensor {}", name);
    const Entry& entry = found->second;
    ATOLL_CHECK_EQ(element_count(entry.shape), static_cast<std::int64_t>(values.size()), "{}", name);
    const ReadableFile& file = *files_.at(entry.file);
    if (entry.dtype == "F32")
        file.read(entry.offset_bytes, std::as_writable_bytes(values));
    else if (entry.dtype == "F64")
        read_converted<double>(file, entry.offset_bytes, values,
                               [](double x) { return static_cast<float>(x); });
    else if (entry.dtype == "F16")
        read_converted<std::uint16_t>(file, entry.offset_bytes, values, from_f16);
    else if (entry.dtype == "BF16")
        read_converted<std::uint16_t>(file, entry.offset_bytes, values, from_bf16);
    else
        fail(entry.file, fmt::format("tensor {} is {}; read here: F32, F64, F16, BF16", name, entry.dtype));
}

}  // namespace atl
