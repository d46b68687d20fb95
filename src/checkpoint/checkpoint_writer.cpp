#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"

namespace atl {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;  // hashed and written while it is in cache

bool is_site_name(const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '-' || c == '.';
    });
}

// The tensor file's name: a hash over all that identifies its content.
std::string tensor_file_name(const std::vector<CheckpointPiece>& pieces) {
    Blake2b hash;
    for (const auto& piece : pieces) {
        const std::string line =
            fmt::format("{} {} {} {}\n", piece.name, to_string(piece.box), name(piece.dtype), piece.blake2b);
        hash.update(std::as_bytes(std::span(line)));
    }
    return fmt::format("tensors-{}.bin", hash.hex().substr(0, 16));
}

}  // namespace

struct CheckpointWriter::State {
    FileSystem& files;
    std::filesystem::path step_directory;
    std::filesystem::path directory;  // of this part
    Manifest manifest;
    std::unique_ptr<WritableFile> file;  // null once closed

    void append(CheckpointPiece piece, std::span<const std::byte> bytes);
    void remove_unnamed_files();
};

CheckpointWriter::CheckpointWriter(FileSystem& files, const std::filesystem::path& step_directory,
                                   const CheckpointPart& part, const CheckpointMetadata& metadata)
    : state_(std::make_unique<State>(State{files, step_directory, {}, {part, metadata, {}, 0, {}}, {}})) {
    ATOLL_CHECK(is_site_name(part.site), "site name \"{}\"", part.site);
    ATOLL_CHECK(part.rank.value() >= 0 && part.rank.value() < part.ranks, "rank {} of {}", part.rank,
                part.ranks);
    state_->directory = part_directory(site_directory(step_directory, part.site), part.rank);
    files.create_directories(state_->directory);
    state_->file = files.create(state_->directory / kTemporaryTensorFile);
}

CheckpointWriter::~CheckpointWriter() {
    if (!state_->file) return;
    state_->file.reset();
    try {
        state_->files.remove_all(state_->directory / kTemporaryTensorFile);
    } catch (const StorageError&) {
        // What made the write fail may hinder this too; the next writer of the part truncates the file.
    }
}

void CheckpointWriter::State::append(CheckpointPiece piece, std::span<const std::byte> bytes) {
    ATOLL_CHECK(file != nullptr, "{} added after commit", piece.name);
    ATOLL_CHECK(!piece.name.empty());
    Blake2b hash;
    piece.offset_bytes = manifest.tensor_file_bytes;
    while (!bytes.empty()) {
        const auto chunk = bytes.first(std::min(kChunkBytes, bytes.size()));
        hash.update(chunk);
        file->append(chunk);
        manifest.tensor_file_bytes += static_cast<std::int64_t>(chunk.size());
        bytes = bytes.subspan(chunk.size());
    }
    piece.blake2b = hash.hex();
    manifest.pieces.push_back(std::move(piece));
}

void CheckpointWriter::add(const std::string& name, const Shape& logical_shape, const Box& box,
                           const BufferView& values) {
    ATOLL_CHECK(values.device == Device::cpu, "{} must be on the host", name);
    ATOLL_CHECK_EQ(box.elements(), values.count, "{}{}", name, to_string(box));
    ATOLL_CHECK(box.elements() == 0 || Box::whole(logical_shape).contains(box), "{}{}", name, to_string(box));
    state_->append({name, logical_shape, box, values.dtype, 0, {}},
                   {static_cast<const std::byte*>(values.data), static_cast<std::size_t>(values.bytes())});
}

void CheckpointWriter::add(const std::string& name, const Shape& logical_shape, const BufferView& values) {
    add(name, logical_shape, Box::whole(logical_shape), values);
}

void CheckpointWriter::add_bytes(const std::string& name, std::span<const std::byte> bytes) {
    const Shape shape = {static_cast<std::int64_t>(bytes.size())};
    state_->append({name, shape, Box::whole(shape), DType::u8, 0, {}}, bytes);
}

void CheckpointWriter::commit() {
    auto& [files, step_directory, directory, manifest, file] = *state_;
    ATOLL_CHECK(file != nullptr, "committed twice");
    file->sync();
    manifest.tensor_file = tensor_file_name(manifest.pieces);
    files.rename(directory / kTemporaryTensorFile, directory / manifest.tensor_file);
    file.reset();
    files.sync_directory(directory);
    files.write_text_atomically(directory / kManifestName, to_text(manifest));
    const auto site = directory.parent_path();
    for (const auto& parent : {site, step_directory, step_directory.parent_path()})
        files.sync_directory(parent);
    state_->remove_unnamed_files();
}

// The tensors of the part that this one replaced, and what a killed writer left.
void CheckpointWriter::State::remove_unnamed_files() {
    try {
        for (const auto& path : files.list(directory))
            if (path.filename() != kManifestName && path.filename() != manifest.tensor_file)
                files.remove_all(path);
    } catch (const StorageError&) {
        // The part is committed; the next writer or prune_checkpoints removes what is left.
    }
}

}  // namespace atl
