// Scalars as a TensorBoard event file: TFRecord framing with masked CRC32C around hand-encoded protobuf
// messages (Event.wall_time = 1, step = 2, file_version = 3, summary = 5; Summary.value = 1;
// Value.tag = 1, simple_value = 2).
//
// Threads: one. Errors: StorageError. Cost: about 50 bytes and one write per scalar.
// Source: the file layout of tensorflow/core/lib/io/record_writer.h and the field numbers of event.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/file_system.h"

namespace atl {

std::uint32_t crc32c(std::span<const std::byte> bytes);  // Castagnoli; RFC 3720 appendix B.4

class TensorBoardWriter {
  public:
    // Creates `directory`/events.out.tfevents.SECONDS.NAME
    TensorBoardWriter(FileSystem& files, const std::filesystem::path& directory, const std::string& name,
                      const Clock& clock);
    void scalar(const std::string& tag, std::int64_t step, double value);

  private:
    void append_record(const std::string& event);

    const Clock& clock_;
    std::unique_ptr<WritableFile> file_;
};

}  // namespace atl
