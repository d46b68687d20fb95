// Files as a constructor argument, so that tests can fill the disk, tear a write or flip a bit.
//
// Errors: every call throws StorageError naming the path and the system's reason.
// Threads: every call from any thread. Durability: write_file and rename are durable only after
// sync_directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace atl {

// An append-only file being written. Closing without sync() leaves the content to the system.
class WritableFile {
  public:
    virtual ~WritableFile() = default;
    virtual void append(std::span<const std::byte> bytes) = 0;
    virtual void sync() = 0;  // fsync: content is on disk when this returns
};

class ReadableFile {
  public:
    virtual ~ReadableFile() = default;
    virtual std::int64_t size_bytes() const = 0;
    // Fills the whole span from `offset`; a file too short throws CorruptDataError.
    virtual void read(std::int64_t offset, std::span<std::byte> bytes) const = 0;
};

class FileSystem {
  public:
    virtual ~FileSystem() = default;
    virtual std::unique_ptr<WritableFile> create(const std::filesystem::path& path) = 0;  // truncates
    virtual std::unique_ptr<WritableFile> append_to(const std::filesystem::path& path) = 0;
    virtual std::unique_ptr<ReadableFile> open(const std::filesystem::path& path) const = 0;
    virtual bool exists(const std::filesystem::path& path) const = 0;
    virtual std::vector<std::filesystem::path> list(
        const std::filesystem::path& directory) const = 0;  // sorted
    virtual void create_directories(const std::filesystem::path& directory) = 0;
    virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;  // replaces
    virtual void remove_all(const std::filesystem::path& path) = 0;
    virtual void sync_directory(const std::filesystem::path& directory) = 0;

    std::vector<std::byte> read_file(const std::filesystem::path& path) const;
    std::string read_text(const std::filesystem::path& path) const;
    // Temporary file beside it, fsync, rename, fsync of the directory: the old content or the new, never a
    // mix.
    void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
    void write_text_atomically(const std::filesystem::path& path, const std::string& text);
};

// The machine's own file system.
std::unique_ptr<FileSystem> make_system_file_system();

}  // namespace atl
