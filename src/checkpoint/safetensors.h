// The safetensors file format: a JSON header with names, dtypes, shapes and byte ranges, then the values,
// row-major and little-endian. Reads one file or a sharded set with its index; writes one file.
//
// Dtypes read: F32, F64, F16, BF16, all delivered as f32. Written: F32.
// Errors: CorruptDataError for truncated or foreign files and dtypes not read here, naming file and tensor;
// StorageError for the disk.
// Threads: a reader may be shared. Cost: values stream; nothing but the header is held.
// Source: the format description of https://github.com/huggingface/safetensors.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "layout/box.h"

namespace atl {

class SafetensorsReader {
  public:
    struct Entry {
        Shape shape;
        std::string
            dtype;  // as the file spells it; one that isn't read here may stand in the file all the same
        std::filesystem::path file;
        std::int64_t offset_bytes = 0;  // in the file
    };

    // `path`: a .safetensors file, a model.safetensors.index.json, or a directory that holds
    // model.safetensors or that index (UserError if it doesn't).
    SafetensorsReader(const FileSystem& files, const std::filesystem::path& path);

    const std::map<std::string, Entry>& tensors() const { return tensors_; }
    void read(const std::string& name, std::span<float> values) const;

  private:
    void add_file(const FileSystem& files, const std::filesystem::path& path);
    void add_index(const FileSystem& files, const std::filesystem::path& path);

    std::map<std::string, Entry> tensors_;
    std::map<std::filesystem::path, std::unique_ptr<ReadableFile>> files_;
};

struct SafetensorsEntry {
    std::string name;
    Shape shape;
    // Fills row-major values; called once, when the tensor's turn to be written has come.
    std::function<void(std::span<float>)> fill;
};

// Atomic (temporary file, fsync, rename). `metadata` becomes the header's "__metadata__".
void write_safetensors(FileSystem& files, const std::filesystem::path& path,
                       const std::vector<SafetensorsEntry>& entries,
                       const std::map<std::string, std::string>& metadata);

}  // namespace atl
