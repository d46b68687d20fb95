#include "data/batch_dump.h"

#include <array>

namespace atl {
namespace {

constexpr std::array<char, 8> kMagic = {'A', 'T', 'O', 'L', 'L', 'B', 'A', 'T'};
constexpr std::int64_t kVersion = 1;

}  // namespace

BatchDump::BatchDump(FileSystem& files, const std::filesystem::path& path, const BatchShape& shape)
    : file_(files.create(path)) {
    const std::array<std::int64_t, 3> header = {kVersion, shape.micro_batch, shape.context};
    file_->append(std::as_bytes(std::span(kMagic)));
    file_->append(std::as_bytes(std::span(header)));
}

void BatchDump::append(Step step, std::int64_t block, std::int64_t micro_batch, const MicroBatchView& batch) {
    const std::array<std::int64_t, 3> place = {step.value(), block, micro_batch};
    file_->append(std::as_bytes(std::span(place)));
    for (const auto values : {batch.tokens, batch.targets, batch.positions, batch.starts})
        file_->append(std::as_bytes(values));
}

}  // namespace atl
