// The machine's file system, with a disk that can fill up: after `budget_bytes` more bytes every append fails
// half way through with "no space left", as a full disk or a killed writer leaves it; after a budget of
// operations every further one fails, as if the machine had died there.
#pragma once

#include <memory>
#include <optional>

#include "core/file_system.h"

namespace atl::test {

class FaultFileSystem final : public FileSystem {
  public:
    // From now on this many bytes can be appended, and this many files created, synced, renamed or removed; nothing
    // = no limit.
    void limit_bytes(std::optional<std::int64_t> budget_bytes) { *bytes_left_ = budget_bytes; }
    void limit_operations(std::optional<std::int64_t> budget) { *operations_left_ = budget; }

    std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override;
    std::unique_ptr<WritableFile> append_to(const std::filesystem::path& path) override;
    std::unique_ptr<ReadableFile> open(const std::filesystem::path& path) const override {
        return real_->open(path);
    }
    bool exists(const std::filesystem::path& path) const override { return real_->exists(path); }
    std::vector<std::filesystem::path> list(const std::filesystem::path& directory) const override {
        return real_->list(directory);
    }
    void create_directories(const std::filesystem::path& directory) override;
    void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
    void remove_all(const std::filesystem::path& path) override;
    void sync_directory(const std::filesystem::path& directory) override;

  private:
    void spend_operation(const std::filesystem::path& path);

    std::unique_ptr<FileSystem> real_ = make_system_file_system();
    std::shared_ptr<std::optional<std::int64_t>> bytes_left_ =
        std::make_shared<std::optional<std::int64_t>>();  // open files hold it too
    std::shared_ptr<std::optional<std::int64_t>> operations_left_ =
        std::make_shared<std::optional<std::int64_t>>();
};

}  // namespace atl::test
