// Checkpoints on failing disks: whatever operation or byte is the last that works, the newest complete
// checkpoint is whole; damage is reported with the file and the tensor.
#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "support/fault_file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

constexpr std::size_t kElements = 1000;

CheckpointMetadata metadata(std::int64_t step) {
    return {.run_id = "run", .step = Step(step)};
}

void write(FileSystem& files, const std::filesystem::path& checkpoints, std::int64_t step, float value) {
    std::vector<float> values(kElements, value);
    CheckpointWriter writer(files, checkpoint_directory(checkpoints, Step(step)), {"a"}, metadata(step));
    writer.add("parameters/w", {kElements}, view_of(values));
    writer.add("residual/w", {kElements}, view_of(values));
    writer.commit();
}

// The step and the value of the newest complete checkpoint, after reading all of it.
std::pair<std::int64_t, float> newest(const FileSystem& files, const std::filesystem::path& checkpoints) {
    for (const auto& found : find_checkpoints(files, checkpoints)) {
        if (!found.complete_for("a")) continue;
        const CheckpointReader reader(files, found.path);
        reader.verify();
        std::vector<float> values(kElements);
        reader.read("residual/w", values);
        EXPECT_EQ(values, std::vector<float>(kElements, values[0]));
        return {found.step.value(), values[0]};
    }
    return {-1, 0};
}

// Runs `action` with only the first k operations working, for every k until it gets through.
template <class Prepare, class Action, class Check>
std::int64_t fail_at_every_operation(Prepare prepare, Action action, Check check) {
    for (std::int64_t k = 0;; ++k) {
        SCOPED_TRACE(fmt::format("{} operations work", k));
        const test::TemporaryDirectory directory;
        test::FaultFileSystem files;
        prepare(files, directory.path());
        files.limit_operations(k);
        bool failed = false;
        try {
            action(files, directory.path());
        } catch (const StorageError&) {
            failed = true;
        }
        files.limit_operations({});
        check(files, directory.path(), failed);
        if (!failed) return k;
    }
}

TEST(CheckpointFault, a_write_that_dies_at_any_operation_leaves_the_older_checkpoint_good) {
    using Path = std::filesystem::path;
    const auto operations = fail_at_every_operation(
        [](FileSystem& files, const Path& path) { write(files, path, 1, 1); },
        [](FileSystem& files, const Path& path) { write(files, path, 2, 2); },
        [](FileSystem& files, const Path& path, bool failed) {
            const auto found = newest(files, path);
            if (!failed)
                EXPECT_EQ(found, std::pair(std::int64_t{2}, 2.0f));
            else
                EXPECT_TRUE(found == std::pair(std::int64_t{1}, 1.0f) ||
                            found == std::pair(std::int64_t{2}, 2.0f));
            write(files, path, 2, 3);  // the disk is well again: the same step can be written
            EXPECT_EQ(newest(files, path), std::pair(std::int64_t{2}, 3.0f));
            EXPECT_EQ(files.list(checkpoint_directory(path, Step(2)) / "site_a" / "rank_0").size(), 2u);
        });
    EXPECT_GT(operations, 8)
        << "create, sync, rename and sync of the folder, for tensors and for the manifest";
}

TEST(CheckpointFault, replacing_the_only_checkpoint_leaves_the_old_or_the_new_one) {
    using Path = std::filesystem::path;
    fail_at_every_operation([](FileSystem& files, const Path& path) { write(files, path, 1, 1); },
                            [](FileSystem& files, const Path& path) { write(files, path, 1, 2); },
                            [](FileSystem& files, const Path& path, bool failed) {
                                const auto [step, value] = newest(files, path);
                                EXPECT_EQ(step, 1);
                                EXPECT_TRUE(value == 2 || (failed && value == 1)) << value;
                            });
}

TEST(CheckpointFault, pruning_that_dies_at_any_operation_leaves_whole_checkpoints) {
    using Path = std::filesystem::path;
    fail_at_every_operation(
        [](FileSystem& files, const Path& path) {
            for (const std::int64_t step : {1, 2, 3, 4}) write(files, path, step, static_cast<float>(step));
        },
        [](FileSystem& files, const Path& path) { prune_checkpoints(files, path, "a", 2); },
        [](FileSystem& files, const Path& path, bool) {
            for (const auto& found : find_checkpoints(files, path))
                for (const auto& site : found.sites) EXPECT_TRUE(site.complete()) << site.problem;
            EXPECT_EQ(newest(files, path), std::pair(std::int64_t{4}, 4.0f));
            prune_checkpoints(files, path, "a", 2);
            EXPECT_EQ(files.list(path).size(), 2u) << "a later prune finishes the work";
        });
}

TEST(CheckpointFault, a_disk_that_fills_up_at_any_byte_leaves_the_older_checkpoint_good) {
    const test::TemporaryDirectory directory;
    test::FaultFileSystem files;
    write(files, directory.path(), 1, 1);
    int failures = 0;
    for (std::int64_t budget = 0; budget < 12'000; budget += 97) {
        files.limit_bytes(budget);
        try {
            write(files, directory.path(), 2, 2);
        } catch (const StorageError& error) {
            EXPECT_NE(std::string(error.what()).find("no space left"), std::string::npos);
            ++failures;
            EXPECT_EQ(newest(files, directory.path()), std::pair(std::int64_t{1}, 1.0f)) << budget;
        }
        if (newest(files, directory.path()).first == 2) break;
    }
    EXPECT_GT(failures, 80) << "8,000 bytes of values and the manifest";
    EXPECT_EQ(newest(files, directory.path()), std::pair(std::int64_t{2}, 2.0f));
}

TEST(CheckpointFault, a_disk_that_fills_up_while_a_step_is_replaced_leaves_the_old_or_the_new_one) {
    for (std::int64_t budget = 7'500; budget < 12'000; budget += 61) {
        SCOPED_TRACE(fmt::format("{} bytes fit", budget));
        const test::TemporaryDirectory directory;
        test::FaultFileSystem files;
        write(files, directory.path(), 1, 1);
        files.limit_bytes(budget);
        bool failed = false;
        try {
            write(files, directory.path(), 1, 2);
        } catch (const StorageError&) {
            failed = true;
        }
        EXPECT_EQ(newest(files, directory.path()), std::pair(std::int64_t{1}, failed ? 1.0f : 2.0f));
        if (!failed) return;
    }
    ADD_FAILURE() << "12,000 bytes are enough";
}

std::filesystem::path only_file(const FileSystem& files, const std::filesystem::path& part,
                                const std::string& prefix) {
    for (const auto& path : files.list(part))
        if (path.filename().string().starts_with(prefix)) return path;
    return {};
}

void flip_bit(const std::filesystem::path& path, std::int64_t byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(byte);
    const char old = static_cast<char>(file.get());
    file.seekp(byte);
    file.put(static_cast<char>(old ^ 0x10));
}

class DamagedCheckpoint : public testing::Test {
  protected:
    DamagedCheckpoint() { write(*files_, directory_.path(), 1, 1); }
    std::filesystem::path step() const { return checkpoint_directory(directory_.path(), Step(1)); }
    std::filesystem::path file(const std::string& prefix) const {
        return only_file(*files_, step() / "site_a" / "rank_0", prefix);
    }
    std::string problem() const { return find_checkpoints(*files_, directory_.path())[0].sites[0].problem; }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

TEST_F(DamagedCheckpoint, a_flipped_bit_names_file_and_tensor_and_spares_the_others) {
    flip_bit(file("tensors-"), 4 * kElements + 17);  // in the second tensor
    const CheckpointReader reader(*files_, step());
    std::vector<float> values(kElements);
    reader.read("parameters/w", values);
    for (const bool all : {false, true}) {
        try {
            all ? reader.verify() : reader.read("residual/w", values);
            FAIL();
        } catch (const CorruptDataError& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(file("tensors-").string()), std::string::npos) << message;
            EXPECT_NE(message.find("residual/w"), std::string::npos) << message;
        }
    }
}

TEST_F(DamagedCheckpoint, a_truncated_tensor_file_is_not_a_complete_checkpoint) {
    std::filesystem::resize_file(file("tensors-"), 4 * kElements);
    EXPECT_NE(problem().find("4000 bytes, the manifest says 8000"), std::string::npos) << problem();
    EXPECT_THROW(CheckpointReader(*files_, step()), CorruptDataError);
}

TEST_F(DamagedCheckpoint, a_missing_tensor_file_is_not_a_complete_checkpoint) {
    files_->remove_all(file("tensors-"));
    EXPECT_NE(problem().find("tensors-"), std::string::npos) << problem();
}

TEST_F(DamagedCheckpoint, a_bit_flipped_anywhere_in_the_manifest_is_seen) {
    const auto path = file("manifest.json");
    const auto bytes = files_->read_file(path);
    for (std::size_t byte = 0; byte < bytes.size(); byte += 3) {
        if (std::isspace(static_cast<unsigned char>(bytes[byte]))) continue;  // no content between tokens
        flip_bit(path, static_cast<std::int64_t>(byte));
        EXPECT_NE(problem().find("manifest.json"), std::string::npos) << "byte " << byte << ": " << problem();
        flip_bit(path, static_cast<std::int64_t>(byte));
    }
    EXPECT_EQ(problem(), "");
}

TEST_F(DamagedCheckpoint, a_foreign_manifest_is_refused) {
    files_->write_text_atomically(file("manifest.json"), R"({"model": "something else"})");
    EXPECT_NE(problem().find("manifest_blake2b"), std::string::npos) << problem();
    files_->write_text_atomically(file("manifest.json"), "");
    EXPECT_NE(problem().find("manifest.json"), std::string::npos) << problem();
}

}  // namespace
}  // namespace atl
