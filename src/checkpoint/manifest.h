// The manifest of one rank's part: what the tensor file beside it holds. Text form in FORMAT.md.
//
// Errors: parse_manifest and load_manifest throw CorruptDataError naming the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace atl {

// One stored box of a tensor.
struct CheckpointPiece {
    std::string name;
    Shape shape;  // logical, of the whole tensor
    Box box;
    DType dtype = DType::f32;
    std::int64_t offset_bytes = 0;  // in the tensor file
    std::string blake2b;

    std::int64_t bytes() const { return box.elements() * size_bytes(dtype); }
};

struct Manifest {
    CheckpointPart part;
    CheckpointMetadata metadata;
    std::string tensor_file;  // name within the part's directory
    std::int64_t tensor_file_bytes = 0;
    std::vector<CheckpointPiece> pieces;
};

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kTemporaryTensorFile = "tensors.tmp";

std::string to_text(const Manifest& manifest);
Manifest parse_manifest(const std::string& text, const std::filesystem::path& path);

// The manifest in `part_directory`, after checking that its tensor file has the size it says.
Manifest load_manifest(const FileSystem& files, const std::filesystem::path& part_directory);

std::filesystem::path site_directory(const std::filesystem::path& step_directory, const std::string& site);
std::filesystem::path part_directory(const std::filesystem::path& site_directory, Rank rank);

// Why a site's directory is not a complete checkpoint; empty when it is one.
std::string site_problem(const FileSystem& files, const std::filesystem::path& site_directory);
std::vector<FoundSite> find_sites(const FileSystem& files, const std::filesystem::path& step_directory);

// N when the last component of `path` is "PREFIXN", else −1.
std::int64_t number_after(const std::string& prefix, const std::filesystem::path& path);

}  // namespace atl
