#include "simulator/fold_schedules.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

using enum WorkKind;

PipelineShape fold(std::int32_t ranks) {
    return {ranks, 2, StagePlacement::fold};
}

// 1F1B of `count` items on one rank: `down` and `up` append what an item does first and second.
template <class Down, class Up>
void one_f_one_b(std::int32_t count, std::int32_t warm_up, Down&& down, Up&& up) {
    const auto lead = std::min(warm_up, count);
    for (std::int32_t i = 0; i < count + lead; ++i) {
        if (i < count) down(i);
        if (i >= lead) up(i - lead);
    }
}

// The greedy order of ZB-V: every rank takes a unit of time for any piece of work.
class ZeroBubbleV {
  public:
    ZeroBubbleV(std::int32_t ranks, std::int32_t micro_batches)
        : ranks_(ranks),
          micro_batches_(micro_batches),
          table_{fold(ranks), micro_batches, std::vector<std::vector<Slot>>(static_cast<std::size_t>(ranks))},
          forwards_(2 * static_cast<std::size_t>(ranks), 0),
          input_gradients_(forwards_),
          weight_gradients_(forwards_) {}

    ScheduleTable run() {
        const std::size_t pieces = 6 * static_cast<std::size_t>(micro_batches_);
        bool all_done = false;
        while (!all_done) {
            // All ranks choose by what had been done before this unit of time.
            std::vector<std::optional<Work>> chosen;
            for (std::int32_t rank = 0; rank < ranks_; ++rank) chosen.push_back(choose(rank));
            ATOLL_CHECK(std::ranges::any_of(chosen, [](const auto& work) { return work.has_value(); }),
                        "nothing is ready");
            all_done = true;
            for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
                if (chosen[rank]) take(rank, *chosen[rank]);
                all_done = all_done && table_.ranks[rank].size() == pieces;
            }
        }
        return std::move(table_);
    }

  private:
    std::int32_t& done(std::vector<std::int32_t>& counts, std::int32_t stage) {
        return counts[static_cast<std::size_t>(stage)];
    }
    std::optional<Work> choose(std::int32_t rank) {
        const auto down = rank, up = 2 * ranks_ - 1 - rank;
        for (const auto stage : {down, up})
            if (input_gradient_is_ready(stage)) return Work{input_gradient, stage, done(input_gradients_, stage)};
        for (const auto stage : {up, down})
            if (forward_is_ready(stage)) return Work{forward, stage, done(forwards_, stage)};
        std::optional<Work> oldest;
        for (const auto stage : {up, down}) {
            const auto k = done(weight_gradients_, stage);
            if (k < done(input_gradients_, stage) && (!oldest || k < oldest->micro_batch))
                oldest = Work{weight_gradient, stage, k};
        }
        return oldest;
    }
    bool forward_is_ready(std::int32_t stage) {
        const auto k = done(forwards_, stage);
        if (k == micro_batches_) return false;
        if (stage > 0 && done(forwards_, stage - 1) <= k) return false;
        // A micro-batch is under way on a rank from its first forward to its last weight gradient there.
        const auto ended =
            std::min(done(weight_gradients_, stage), done(weight_gradients_, 2 * ranks_ - 1 - stage));
        return stage >= ranks_ || k - ended < ranks_;
    }
    bool input_gradient_is_ready(std::int32_t stage) {
        const auto k = done(input_gradients_, stage);
        if (k >= done(forwards_, stage)) return false;
        return stage == 2 * ranks_ - 1 || done(input_gradients_, stage + 1) > k;
    }
    void take(std::size_t rank, const Work& work) {
        table_.ranks[rank].push_back({work, {}});
        auto& counts = work.kind == forward          ? forwards_
                       : work.kind == input_gradient ? input_gradients_
                                                     : weight_gradients_;
        ++done(counts, work.stage);
    }

    std::int32_t ranks_;
    std::int32_t micro_batches_;
    ScheduleTable table_;
    std::vector<std::int32_t> forwards_;  // [stage]: how many are done
    std::vector<std::int32_t> input_gradients_;
    std::vector<std::int32_t> weight_gradients_;
};

}  // namespace

ScheduleTable w_schedule(std::int32_t ranks, std::int32_t micro_batches) {
    ScheduleTable table{fold(ranks), micro_batches, {}};
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto& slots = table.ranks.emplace_back();
        const auto meet = [&](std::int32_t forward_stage, std::int32_t k) {
            const Work ahead{forward, forward_stage, k}, behind{backward, 2 * ranks - 1 - forward_stage, k - ranks};
            const bool has_forward = k < micro_batches, has_backward = k >= ranks;
            if (has_forward && has_backward)
                slots.push_back({ahead, behind});
            else if (has_forward || has_backward)
                slots.push_back({has_forward ? ahead : behind, {}});
        };
        one_f_one_b(
            micro_batches + ranks, ranks - 1 - rank, [&](std::int32_t k) { meet(rank, k); },
            [&](std::int32_t k) { meet(2 * ranks - 1 - rank, k); });
    }
    return table;
}

ScheduleTable zero_bubble_v_schedule(std::int32_t ranks, std::int32_t micro_batches) {
    return ZeroBubbleV(ranks, micro_batches).run();
}

ScheduleTable side_by_side_schedule(std::int32_t ranks, std::int32_t micro_batches) {
    ScheduleTable table{{ranks, 1, StagePlacement::round_robin}, micro_batches, {}};
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto& slots = table.ranks.emplace_back();
        const auto both = [&](WorkKind kind, std::int32_t pair) {
            Slot slot{{kind, rank, 2 * pair}, {}};
            if (2 * pair + 1 < micro_batches) slot.second = Work{kind, rank, 2 * pair + 1};
            slots.push_back(slot);
        };
        one_f_one_b(
            (micro_batches + 1) / 2, ranks - 1 - rank, [&](std::int32_t i) { both(forward, i); },
            [&](std::int32_t i) { both(backward, i); });
    }
    return table;
}

}  // namespace atl
