#include "program/step_ops.h"

#include <algorithm>

#include "core/check.h"

namespace atl {

std::vector<OpId> StepOps::ops_of(const BlockKey& key) const {
    const auto found = std::ranges::lower_bound(blocks, key, {}, &Block::key);
    return found == blocks.end() || found->key != key ? std::vector<OpId>{} : found->ops;
}

StepBuilder::StepBuilder(Rank rank, std::int32_t layers, std::int32_t micro_batches)
    : values_(rank), layers_(layers), micro_batches_(micro_batches) {}

void StepBuilder::open(const BlockKey& key) {
    const auto found = block_of_.try_emplace(key, blocks_.size()).first;
    open_ = found->second;
    if (open_ == blocks_.size()) blocks_.push_back({key, {}});
}

OpId StepBuilder::add(Op op) {
    ATOLL_CHECK_LT(open_, blocks_.size(), "no block is open");
    Block& block = blocks_[open_];
    const bool inside_layers = block.key.layer >= 0 && block.key.layer < layers_;
    op.layer = inside_layers ? block.key.layer : -1;
    op.micro_batch = block.key.micro_batch;
    op.strand = block.key.strand;
    if (op.resource == Resource::compute && op.bytes == 0) {
        for (const auto id : op.reads) op.bytes += program().value(id).bytes();
        for (const auto id : op.writes) op.bytes += program().value(id).bytes();
    }
    block.ops.push_back(values_.add(std::move(op)));
    return block.ops.back();
}

StepOps StepBuilder::take() {
    std::ranges::sort(blocks_, {}, &Block::key);  // ops_of searches
    return {values_.take(), std::move(blocks_), layers_, micro_batches_, std::move(stages_)};
}

}  // namespace atl
