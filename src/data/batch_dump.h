// Batches as they were trained on, in a file that other programs read for comparisons. FORMAT in README.md.
//
// Threads: one at a time. Errors: StorageError. Cost: 16 bytes per token.
#pragma once

#include <filesystem>
#include <memory>

#include "core/file_system.h"
#include "core/ids.h"
#include "data/micro_batch.h"

namespace atl {

class BatchDump {
  public:
    // Replaces the file.
    BatchDump(FileSystem& files, const std::filesystem::path& path, const BatchShape& shape);
    void append(Step step, std::int64_t block, std::int64_t micro_batch, const MicroBatchView& batch);

  private:
    std::unique_ptr<WritableFile> file_;
};

}  // namespace atl
