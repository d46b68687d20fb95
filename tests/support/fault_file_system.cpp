#include "support/fault_file_system.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace atl::test {
namespace {

using Budget = std::shared_ptr<std::optional<std::int64_t>>;

void spend(const Budget& operations_left, const std::filesystem::path& path) {
    if (!*operations_left) return;
    if (**operations_left == 0)
        throw StorageError(fmt::format("[files] {}: input/output error (injected)", path.string()));
    --**operations_left;
}

class LimitedFile final : public WritableFile {
  public:
    LimitedFile(std::unique_ptr<WritableFile> file, std::filesystem::path path, Budget bytes_left,
                Budget operations_left)
        : file_(std::move(file)),
          path_(std::move(path)),
          bytes_left_(std::move(bytes_left)),
          operations_left_(std::move(operations_left)) {}

    void append(std::span<const std::byte> bytes) override {
        if (!*bytes_left_) return file_->append(bytes);
        const auto fits = std::min<std::int64_t>(**bytes_left_, static_cast<std::int64_t>(bytes.size()));
        file_->append(bytes.first(static_cast<std::size_t>(fits)));
        **bytes_left_ -= fits;
        if (fits < static_cast<std::int64_t>(bytes.size()))
            throw StorageError("[files] can't write: no space left on device (injected)");
    }
    void sync() override {
        spend(operations_left_, path_);
        file_->sync();
    }

  private:
    std::unique_ptr<WritableFile> file_;
    std::filesystem::path path_;
    Budget bytes_left_;
    Budget operations_left_;
};

}  // namespace

std::unique_ptr<WritableFile> FaultFileSystem::create(const std::filesystem::path& path) {
    spend_operation(path);
    return std::make_unique<LimitedFile>(real_->create(path), path, bytes_left_, operations_left_);
}

std::unique_ptr<WritableFile> FaultFileSystem::append_to(const std::filesystem::path& path) {
    spend_operation(path);
    return std::make_unique<LimitedFile>(real_->append_to(path), path, bytes_left_, operations_left_);
}

void FaultFileSystem::create_directories(const std::filesystem::path& directory) {
    spend_operation(directory);
    real_->create_directories(directory);
}

void FaultFileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
    spend_operation(to);
    real_->rename(from, to);
}

void FaultFileSystem::remove_all(const std::filesystem::path& path) {
    spend_operation(path);
    real_->remove_all(path);
}

void FaultFileSystem::sync_directory(const std::filesystem::path& directory) {
    spend_operation(directory);
    real_->sync_directory(directory);
}

void FaultFileSystem::spend_operation(const std::filesystem::path& path) {
    spend(operations_left_, path);
}

}  // namespace atl::test
