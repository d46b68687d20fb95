#include <algorithm>
#include <map>

#include "core/check.h"
#include "program/interleave.h"
#include "program/messages.h"
#include "program/reorder.h"
#include "program/schedule.h"
#include "program/schedule_parts.h"

namespace atl {
namespace {

class Expansion {
  public:
    Expansion(const StepOps& step, const ScheduleTable& table, const OrderPair& order_pair)
        : step_(step),
          order_pair_(order_pair),
          program_(step.program),
          table_(table),
          rank_(table.pipeline.rank_of(step.stages.front().stage)),
          messages_(table, rank_) {
        ATOLL_CHECK_EQ(step.micro_batches, table.micro_batches, "micro-batches of the step and of the table");
        std::vector<std::int32_t> stages;
        for (const auto& stage : step.stages) stages.push_back(stage.stage);
        ATOLL_CHECK(stages == table.pipeline.stages_of(rank_),
                    "the step holds {} stages that aren't rank {}'s", stages.size(), rank_);
    }

    Program run() {
        const auto& slots = table_.ranks[static_cast<std::size_t>(rank_)];
        for (std::size_t i = 0; i < slots.size(); ++i) add_slot(slots[i], i);
        ATOLL_CHECK(messages_.all_sent(), "a send is missing");
        order_ = insert_reductions(step_, order_);
        for (const auto id : step_.ops_of({StepPart::optimizer})) order_.push_back(id);
        return reordered(std::move(program_), order_);
    }

  private:
    Op& op(OpId id) { return program_.ops[static_cast<std::size_t>(id.value())]; }

    const StageBlocks& blocks_of(std::int32_t stage) const {
        return *std::ranges::find(step_.stages, stage, &StageBlocks::stage);
    }

    // The ops of a piece of work by layer, in the direction in which it goes through them.
    LayerOps ops_of(const Work& work) const {
        const auto& stage = blocks_of(work.stage);
        LayerOps layers;
        for (auto layer = stage.begin_layer; layer < stage.end_layer; ++layer) {
            const auto k = work.micro_batch;
            if (work.kind == WorkKind::forward)
                layers.push_back(step_.ops_of({StepPart::forward, layer, k}));
            else if (work.kind == WorkKind::backward)
                layers.push_back(backward_ops(step_, layer, k));
            else if (work.kind == WorkKind::input_gradient)
                layers.push_back(step_.ops_of({StepPart::backward_input, layer, k}));
            else
                layers.push_back(step_.ops_of({StepPart::backward_weight, layer, k}));
        }
        if (work.kind != WorkKind::forward) std::ranges::reverse(layers);
        return layers;
    }

    void add_slot(const Slot& slot, std::size_t index) {
        auto first = take_up(slot.first, 0, index);
        auto second = slot.second ? take_up(*slot.second, 1, index) : LayerOps{};
        last_compute_.push_back(last_compute_.empty() ? OpId(-1) : last_compute_.back());
        for (const auto id : order_of(slot, first, second)) {
            if (op(id).resource == Resource::compute) last_compute_.back() = id;
            if (op(id).kind != OpKind::send) {
                order_.push_back(id);
                continue;
            }
            for (const auto released : messages_.send(work_of_send_.at(id), id)) order_.push_back(released);
        }
    }

    std::vector<OpId> order_of(const Slot& slot, const LayerOps& first, const LayerOps& second) const {
        if (!slot.second || !order_pair_) return interleave(program_, first, second);
        return order_pair_(program_, slot, first, second);
    }

    // Issues the work's receives; returns its other ops.
    LayerOps take_up(const Work& work, std::int32_t strand, std::size_t slot) {
        auto layers = ops_of(work);
        for (auto& layer : layers) {
            for (const auto id : layer) {
                op(id).strand = strand;
                if (op(id).kind == OpKind::receive) add_receive(id, work, slot);
                if (op(id).kind == OpKind::send) {
                    work_of_send_.emplace(id, work);
                    messages_.expect_send(work);
                }
            }
            std::erase_if(layer, [&](OpId id) { return op(id).kind == OpKind::receive; });
        }
        return layers;
    }

    void add_receive(OpId id, const Work& work, std::size_t slot) {
        auto& after = op(id).after;
        if (slot >= 2 && last_compute_[slot - 2] != OpId(-1)) after.push_back(last_compute_[slot - 2]);
        if (const auto proven = messages_.send_proven_received_by(work)) after.push_back(*proven);
        order_.push_back(id);
    }

    const StepOps& step_;
    const OrderPair& order_pair_;
    Program program_;  // its ops with strands and waits filled in, not yet in order
    const ScheduleTable& table_;
    std::int32_t rank_;
    Messages messages_;
    std::vector<OpId> order_;
    std::vector<OpId> last_compute_;  // [slot]: up to its end
    std::map<OpId, Work> work_of_send_;
};

}  // namespace

Program expand(const StepOps& step, const ScheduleTable& table, const OrderPair& order_pair) {
    ATOLL_CHECK(!step.stages.empty(), "the step says of no stage");
    return Expansion(step, table, order_pair).run();
}

}  // namespace atl
