// The ops of one rank's step before anybody has ordered them: blocks of ops, keyed by what they do for which layer
// and micro-batch. A model emits them once; each schedule is another ordering of the same blocks.
//
// Inside a block ops stand in a legal order. Blocks of one (layer, micro-batch) of backward_input and
// backward_weight may be merged by op id: ids are the order of emission, and a weight gradient is emitted as soon
// as its operands exist.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "program/program.h"

namespace atl {

enum class StepPart : std::uint8_t {
    forward,
    backward_input,
    backward_weight,
    reduction,  // gradients over the data-parallel group
    optimizer,
};

// `layer` counts from 0; the embedding is layer -1, the head is the one behind the last.
inline constexpr std::int32_t kEmbeddingLayer = -1;

struct BlockKey {
    StepPart phase = StepPart::forward;
    std::int32_t layer = -1;
    std::int32_t micro_batch = -1;  // -1: once a step
    std::int32_t strand = 0;
    auto operator<=>(const BlockKey&) const = default;
};

struct Block {
    BlockKey key;
    std::vector<OpId> ops;
};

// A pipeline stage that this rank holds: the blocks of layers [begin_layer, end_layer), where the embedding's (layer
// -1) belong to the first stage and the head's (the layer behind the last) to the last one.
struct StageBlocks {
    std::int32_t stage = 0;
    std::int32_t begin_layer = 0;
    std::int32_t end_layer = 0;
    bool operator==(const StageBlocks&) const = default;
};

struct StepOps {
    Program program;  // all values, and the ops in order of emission
    std::vector<Block> blocks;
    std::int32_t layers = 0;  // of the whole model
    std::int32_t micro_batches = 0;
    std::vector<StageBlocks> stages;  // ascending

    // The ops of a block; none if there is no such block.
    std::vector<OpId> ops_of(const BlockKey& key) const;
};

// Emits ops into the block opened last; a block may be opened again.
class StepBuilder {
  public:
    StepBuilder(Rank rank, std::int32_t layers, std::int32_t micro_batches);

    void open(const BlockKey& key);
    ValueId add(Value value) { return values_.add(std::move(value)); }
    // Fills in strand, layer, micro-batch and, for a compute op without one, bytes = all it reads and writes.
    OpId add(Op op);
    void add_group(const std::string& name, std::vector<Rank> members) {
        values_.add_group(name, std::move(members));
    }
    const Program& program() const { return values_.program(); }
    void add_stage(const StageBlocks& stage) { stages_.push_back(stage); }
    StepOps take();

  private:
    ProgramBuilder values_;
    std::vector<Block> blocks_;
    std::vector<StageBlocks> stages_;
    std::map<BlockKey, std::size_t> block_of_;
    std::size_t open_ = 0;
    std::int32_t layers_;
    std::int32_t micro_batches_;
};

}  // namespace atl
