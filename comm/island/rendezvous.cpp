#include "comm/island/rendezvous.h"

#include <thread>

#include "core/check.h"
#include "core/error.h"
#include "core/file_system.h"

namespace atl {
namespace {

constexpr Milliseconds kPollInterval{5};

class FileRendezvous final : public Rendezvous {
  public:
    FileRendezvous(std::filesystem::path directory, Rank rank, std::int32_t size)
        : directory_(std::move(directory)), rank_(rank), size_(size), files_(make_system_file_system()) {
        files_->create_directories(directory_);
    }

    std::vector<std::string> exchange(const std::string& key, std::string_view mine,
                                      Milliseconds timeout) override {
        const Deadline deadline = clock_.after(timeout);
        files_->write_text_atomically(file_of(key, rank_.value()), std::string(mine));
        while (true) {
            const std::string missing = missing_ranks(key);
            if (missing.empty()) break;
            if (clock_.now() >= deadline) {
                throw CommError(
                    fmt::format("[island] rendezvous '{}' in {}: rank {} of {} did not come within {} ms; "
                                "look at its log",
                                key, directory_.string(), missing, size_, timeout.count()));
            }
            std::this_thread::sleep_for(kPollInterval);  // polling: a directory of another host has no events
        }
        std::vector<std::string> all;
        for (std::int32_t r = 0; r < size_; ++r) all.push_back(files_->read_text(file_of(key, r)));
        return all;
    }

  private:
    std::filesystem::path file_of(const std::string& key, std::int32_t rank) const {
        return directory_ / fmt::format("{}_rank_{}", key, rank);
    }
    std::string missing_ranks(const std::string& key) const {
        std::string missing;
        for (std::int32_t r = 0; r < size_; ++r) {
            if (files_->exists(file_of(key, r))) continue;
            missing += fmt::format("{}{}", missing.empty() ? "" : ", ", r);
        }
        return missing;
    }

    std::filesystem::path directory_;
    Rank rank_;
    std::int32_t size_;
    std::unique_ptr<FileSystem> files_;
    SystemClock clock_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_file_rendezvous(std::filesystem::path directory, Rank rank,
                                                 std::int32_t size) {
    return std::make_unique<FileRendezvous>(std::move(directory), rank, size);
}

}  // namespace atl
