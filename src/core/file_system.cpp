#include "core/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace atl {
namespace {

[[noreturn]] void fail(const char* action, const std::filesystem::path& path, int error = errno) {
    throw StorageError(fmt::format("[files] can't {} {}: {}", action, path.string(), std::strerror(error)));
}

class Descriptor {
  public:
    Descriptor(const std::filesystem::path& path, int flags, const char* action)
        : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
        if (fd_ < 0) fail(action, path);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { ::close(fd_); }

    int get() const { return fd_; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    int fd_;
};

class SystemWritableFile final : public WritableFile {
  public:
    SystemWritableFile(const std::filesystem::path& path, int flags)
        : file_(path, O_WRONLY | O_CREAT | flags, "create") {}

    void append(std::span<const std::byte> bytes) override {
        while (!bytes.empty()) {
            const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) fail("write", file_.path());
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        }
    }
    void sync() override {
        if (::fsync(file_.get()) != 0) fail("sync", file_.path());
    }

  private:
    Descriptor file_;
};

class SystemReadableFile final : public ReadableFile {
  public:
    explicit SystemReadableFile(const std::filesystem::path& path) : file_(path, O_RDONLY, "open") {
        struct stat status {};
        if (::fstat(file_.get(), &status) != 0) fail("stat", path);
        if (S_ISDIR(status.st_mode)) fail("open", path, EISDIR);
        size_bytes_ = status.st_size;
    }

    std::int64_t size_bytes() const override { return size_bytes_; }

    void read(std::int64_t offset, std::span<std::byte> bytes) const override {
        while (!bytes.empty()) {
            const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), offset);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) fail("read", file_.path());
            if (count == 0)
                throw CorruptDataError(fmt::format("[files] {} ends at byte {}, {} more were expected",
                                                   file_.path().string(), offset, bytes.size()));
            bytes = bytes.subspan(static_cast<std::size_t>(count));
            offset += count;
        }
    }

  private:
    Descriptor file_;
    std::int64_t size_bytes_ = 0;
};

class SystemFileSystem final : public FileSystem {
  public:
    std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override {
        return std::make_unique<SystemWritableFile>(path, O_TRUNC);
    }
    std::unique_ptr<WritableFile> append_to(const std::filesystem::path& path) override {
        return std::make_unique<SystemWritableFile>(path, O_APPEND);
    }
    std::unique_ptr<ReadableFile> open(const std::filesystem::path& path) const override {
        return std::make_unique<SystemReadableFile>(path);
    }
    bool exists(const std::filesystem::path& path) const override {
        std::error_code error;
        return std::filesystem::exists(path, error);
    }
    std::vector<std::filesystem::path> list(const std::filesystem::path& directory) const override {
        std::error_code error;
        std::vector<std::filesystem::path> entries;
        for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
             it.increment(error))
            entries.push_back(it->path());
        if (error) fail("list", directory, error.value());
        std::sort(entries.begin(), entries.end());
        return entries;
    }
    void create_directories(const std::filesystem::path& directory) override {
        std::error_code error;
        std::filesystem::create_directories(directory, error);
        if (error) fail("create directory", directory, error.value());
    }
    void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
        if (::rename(from.c_str(), to.c_str()) != 0) fail("rename to", to);
    }
    void remove_all(const std::filesystem::path& path) override {
        std::error_code error;
        std::filesystem::remove_all(path, error);
        if (error) fail("remove", path, error.value());
    }
    void sync_directory(const std::filesystem::path& directory) override {
        Descriptor descriptor(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY, "open");
        if (::fsync(descriptor.get()) != 0) fail("sync", directory);
    }
};

}  // namespace

std::vector<std::byte> FileSystem::read_file(const std::filesystem::path& path) const {
    const auto file = open(path);
    std::vector<std::byte> bytes(static_cast<std::size_t>(file->size_bytes()));
    file->read(0, bytes);
    return bytes;
}

std::string FileSystem::read_text(const std::filesystem::path& path) const {
    const auto file = open(path);
    std::string text(static_cast<std::size_t>(file->size_bytes()), '\0');
    file->read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

void FileSystem::write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    auto temporary = path;
    temporary += fmt::format(".{}.tmp", ::getpid());
    {
        const auto file = create(temporary);
        file->append(bytes);
        file->sync();
    }
    rename(temporary, path);
    sync_directory(path.parent_path());
}

void FileSystem::write_text_atomically(const std::filesystem::path& path, const std::string& text) {
    write_file_atomically(path, std::as_bytes(std::span(text)));
}

std::unique_ptr<FileSystem> make_system_file_system() {
    return std::make_unique<SystemFileSystem>();
}

}  // namespace atl
