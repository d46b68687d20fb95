#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"

namespace atl {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "atoll-checkpoint";
constexpr int kVersion = 1;
constexpr const char* kHashKey = "manifest_blake2b";

std::string hash_of(const Json& manifest_without_hash) {
    const std::string text = manifest_without_hash.dump();
    return blake2b_hex(std::as_bytes(std::span(text)));
}

Json to_json(const CheckpointPiece& piece) {
    Json box = Json::array();
    for (const auto& range : piece.box.ranges) box.push_back({range.begin, range.end});
    return {{"name", piece.name},
            {"shape", piece.shape},
            {"box", box},
            {"dtype", name(piece.dtype)},
            {"offset_bytes", piece.offset_bytes},
            {"blake2b", piece.blake2b}};
}

CheckpointPiece piece_from(const Json& json) {
    CheckpointPiece piece;
    json.at("name").get_to(piece.name);
    json.at("shape").get_to(piece.shape);
    for (const auto& range : json.at("box")) piece.box.ranges.push_back({range.at(0), range.at(1)});
    piece.dtype = dtype_from_name(json.at("dtype").get<std::string>());
    json.at("offset_bytes").get_to(piece.offset_bytes);
    json.at("blake2b").get_to(piece.blake2b);
    return piece;
}

void check_piece(const CheckpointPiece& piece, std::int64_t file_bytes) {
    const bool inside = piece.box.ranges.size() == piece.shape.size() &&
                        (piece.box.elements() == 0 || Box::whole(piece.shape).contains(piece.box));
    if (!inside) throw CorruptDataError(fmt::format("box {} outside the tensor", to_string(piece.box)));
    if (piece.offset_bytes < 0 || piece.bytes() > file_bytes - piece.offset_bytes)
        throw CorruptDataError("values outside the tensor file");
}

Manifest manifest_from(const Json& json) {
    if (json.at("format") != kFormat) throw CorruptDataError("not an Atoll checkpoint");
    if (json.at("version") != kVersion)
        throw CorruptDataError(fmt::format("format version {}, this program reads version {}",
                                           json.at("version").dump(), kVersion));
    Manifest manifest;
    json.at("site").get_to(manifest.part.site);
    manifest.part.rank = Rank(json.at("rank"));
    json.at("ranks").get_to(manifest.part.ranks);
    auto& metadata = manifest.metadata;
    json.at("run_id").get_to(metadata.run_id);
    metadata.step = Step(json.at("step"));
    metadata.round = Round(json.at("round"));
    json.at("incarnation").get_to(metadata.incarnation);
    json.at("seed").get_to(metadata.seed);
    json.at("optimizer_step").get_to(metadata.optimizer_step);
    metadata.model = json.at("model").dump();
    metadata.data_cursor = json.at("data_cursor").dump();
    metadata.extra = json.at("extra").dump();
    json.at("tensor_file").get_to(manifest.tensor_file);
    json.at("tensor_file_bytes").get_to(manifest.tensor_file_bytes);
    for (const auto& piece : json.at("pieces")) {
        manifest.pieces.push_back(piece_from(piece));
        check_piece(manifest.pieces.back(), manifest.tensor_file_bytes);
    }
    return manifest;
}

Json object_from(const std::string& text, const char* what) {
    const Json json = Json::parse(text, nullptr, false);
    ATOLL_CHECK(json.is_object(), "{} must be a JSON object, not: {}", what, text);
    return json;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
    const auto& metadata = manifest.metadata;
    Json pieces = Json::array();
    for (const auto& piece : manifest.pieces) pieces.push_back(to_json(piece));
    Json json = {{"format", kFormat},
                 {"version", kVersion},
                 {"site", manifest.part.site},
                 {"rank", manifest.part.rank.value()},
                 {"ranks", manifest.part.ranks},
                 {"run_id", metadata.run_id},
                 {"step", metadata.step.value()},
                 {"round", metadata.round.value()},
                 {"incarnation", metadata.incarnation},
                 {"seed", metadata.seed},
                 {"optimizer_step", metadata.optimizer_step},
                 {"model", object_from(metadata.model, "model")},
                 {"data_cursor", object_from(metadata.data_cursor, "data_cursor")},
                 {"extra", object_from(metadata.extra, "extra")},
                 {"tensor_file", manifest.tensor_file},
                 {"tensor_file_bytes", manifest.tensor_file_bytes},
                 {"pieces", pieces}};
    json[kHashKey] = hash_of(json);
    return json.dump(1) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
    try {
        Json json = Json::parse(text);
        const std::string stored = json.at(kHashKey);
        json.erase(kHashKey);
        if (hash_of(json) != stored) throw CorruptDataError("the content differs from its hash");
        return manifest_from(json);
    } catch (const std::exception& error) {
        throw CorruptDataError(fmt::format("[checkpoint] {}: {}", path.string(), error.what()));
    }
}

Manifest load_manifest(const FileSystem& files, const std::filesystem::path& part_directory) {
    const auto path = part_directory / kManifestName;
    Manifest manifest = parse_manifest(files.read_text(path), path);
    const auto tensor_file = part_directory / manifest.tensor_file;
    const std::int64_t actual_bytes = files.open(tensor_file)->size_bytes();
    if (actual_bytes != manifest.tensor_file_bytes)
        throw CorruptDataError(fmt::format("[checkpoint] {}: {} bytes, the manifest says {}",
                                           tensor_file.string(), actual_bytes, manifest.tensor_file_bytes));
    return manifest;
}

std::filesystem::path site_directory(const std::filesystem::path& step_directory, const std::string& site) {
    return step_directory / ("site_" + site);
}

std::filesystem::path part_directory(const std::filesystem::path& site_directory, Rank rank) {
    return site_directory / fmt::format("rank_{}", rank);
}

std::int64_t number_after(const std::string& prefix, const std::filesystem::path& path) {
    const std::string text = path.filename().string();
    if (!text.starts_with(prefix)) return -1;
    std::int64_t number = -1;
    const char* begin = text.data() + prefix.size();
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(begin, end, number);
    return result.ec == std::errc() && result.ptr == end ? number : -1;
}

}  // namespace atl
