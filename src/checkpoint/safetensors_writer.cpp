#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"

namespace atl {
namespace {

// Keys in the order they are added, so that the header lists tensors as they stand in the file.
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kAlignment = 8;  // of the first value

std::string header_text(const std::vector<SafetensorsEntry>& entries,
                        const std::map<std::string, std::string>& metadata) {
    OrderedJson header = OrderedJson::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::int64_t begin = 0;
    for (const auto& entry : entries) {
        const auto end = begin + element_count(entry.shape) * static_cast<std::int64_t>(sizeof(float));
        header[entry.name] = {{"dtype", "F32"}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
        begin = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    return text;
}

}  // namespace

void write_safetensors(FileSystem& files, const std::filesystem::path& path,
                       const std::vector<SafetensorsEntry>& entries,
                       const std::map<std::string, std::string>& metadata) {
    auto temporary = path;
    temporary += fmt::format(".{}.tmp", ::getpid());
    {
        const auto file = files.create(temporary);
        const std::string header = header_text(entries, metadata);
        const std::uint64_t header_bytes = header.size();
        file->append(std::as_bytes(std::span(&header_bytes, 1)));
        file->append(std::as_bytes(std::span(header)));
        std::vector<float> values;
        for (const auto& entry : entries) {
            values.assign(static_cast<std::size_t>(element_count(entry.shape)), 0.0f);
            entry.fill(values);
            file->append(std::as_bytes(std::span(values)));
        }
        file->sync();
    }
    files.rename(temporary, path);
    files.sync_directory(path.parent_path());
}

}  // namespace atl
