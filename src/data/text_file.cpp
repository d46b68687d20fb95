#include "data/text_file.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/error.h"

namespace atl {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 18;

[[noreturn]] void refuse(const std::filesystem::path& path, std::int64_t byte, std::string_view found) {
    throw CorruptDataError(fmt::format("[data] {}, byte {}: {}", path.string(), byte, found));
}

// The file's raw bytes in chunks; `byte` counts those handed out before.
using ChunkSink = std::function<void(std::int64_t byte, std::string_view chunk)>;

void read_chunks(const FileSystem& files, const std::filesystem::path& path, const ChunkSink& sink) {
    const auto file = files.open(path);
    std::vector<char> chunk(kChunkBytes);
    for (std::int64_t byte = 0; byte < file->size_bytes();) {
        const auto count = static_cast<std::size_t>(std::min(kChunkBytes, file->size_bytes() - byte));
        file->read(byte, std::as_writable_bytes(std::span(chunk).first(count)));
        sink(byte, {chunk.data(), count});
        byte += static_cast<std::int64_t>(count);
    }
}

// Members of a gzip file follow one another; each is a stream of its own.
class GzipReader {
  public:
    explicit GzipReader(std::filesystem::path path) : path_(std::move(path)), output_(kChunkBytes) {
        constexpr int kGzipOnly = 16 + MAX_WBITS;
        if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
    }
    ~GzipReader() { inflateEnd(&stream_); }
    GzipReader(const GzipReader&) = delete;
    GzipReader& operator=(const GzipReader&) = delete;

    void read(std::int64_t byte, std::string_view chunk, const TextSink& sink) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(chunk.data()));  // zlib only reads it
        stream_.avail_in = static_cast<uInt>(chunk.size());
        do {
            if (!inside_member_ && stream_.avail_in == 0) return;
            inside_member_ = true;
            stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
            stream_.avail_out = static_cast<uInt>(output_.size());
            const int status = inflate(&stream_, Z_NO_FLUSH);
            if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
                refuse(path_, byte + static_cast<std::int64_t>(chunk.size() - stream_.avail_in),
                       fmt::format("not gzip: {}", stream_.msg == nullptr ? "broken stream" : stream_.msg));
            sink({output_.data(), output_.size() - stream_.avail_out});
            if (status == Z_STREAM_END) {
                inflateReset(&stream_);
                inside_member_ = false;
            }
        } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    }
    bool at_end() const { return !inside_member_; }

  private:
    std::filesystem::path path_;
    std::vector<char> output_;
    z_stream stream_{};
    bool inside_member_ = false;
};

class ZstdReader {
  public:
    explicit ZstdReader(std::filesystem::path path) : path_(std::move(path)), output_(kChunkBytes) {
        if (stream_ == nullptr) throw std::bad_alloc();
    }

    void read(std::int64_t byte, std::string_view chunk, const TextSink& sink) {
        ZSTD_inBuffer input{chunk.data(), chunk.size(), 0};
        bool output_full = false;
        while (input.pos < input.size || output_full) {
            ZSTD_outBuffer output{output_.data(), output_.size(), 0};
            const std::size_t status = ZSTD_decompressStream(stream_.get(), &output, &input);
            if (ZSTD_isError(status) != 0)
                refuse(path_, byte + static_cast<std::int64_t>(input.pos),
                       fmt::format("not zstd: {}", ZSTD_getErrorName(status)));
            sink({output_.data(), output.pos});
            output_full = output.pos == output.size;
            at_end_ = status == 0;
        }
    }
    bool at_end() const { return at_end_; }

  private:
    struct Free {
        void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
    };
    std::filesystem::path path_;
    std::vector<char> output_;
    std::unique_ptr<ZSTD_DCtx, Free> stream_{ZSTD_createDCtx()};
    bool at_end_ = true;
};

template <class Reader>
void read_compressed(const FileSystem& files, const std::filesystem::path& path, const TextSink& sink) {
    Reader reader(path);
    std::int64_t size = 0;
    read_chunks(files, path, [&](std::int64_t byte, std::string_view chunk) {
        reader.read(byte, chunk, sink);
        size = byte + static_cast<std::int64_t>(chunk.size());
    });
    if (!reader.at_end()) refuse(path, size, "the file ends in the middle of its compressed content");
}

}  // namespace

void read_text_file(const FileSystem& files, const std::filesystem::path& path, const TextSink& sink) {
    if (path.extension() == ".gz") return read_compressed<GzipReader>(files, path, sink);
    if (path.extension() == ".zst") return read_compressed<ZstdReader>(files, path, sink);
    read_chunks(files, path, [&](std::int64_t, std::string_view chunk) { sink(chunk); });
}

}  // namespace atl
