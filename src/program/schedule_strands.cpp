// DualPipeV's order, and strands on top of it.
#include <algorithm>

#include "core/check.h"
#include "program/schedule_evaluation.h"
#include "program/schedule_generators.h"

namespace atl {
namespace {

using enum WorkKind;

// Writes one rank's slots; counts the micro-batches of each direction itself. `down` is the stage that forwards
// reach first, `up` the one they reach on their way back.
class FoldRank {
  public:
    FoldRank(std::int32_t rank, std::int32_t ranks) : stages_{rank, 2 * ranks - 1 - rank} {}

    void add_forward(int side) { slots.push_back({next(forward, side), {}}); }
    void add_backward(int side) { slots.push_back({next(backward, side), {}}); }
    void add_input_gradient(int side) {
        slots.push_back({next(input_gradient, side), {}});
        held_back_.push_back(slots.back().first);
    }
    // The oldest weight gradient that is held back, if there is one.
    void add_weight_gradient() {
        if (held_back_.empty()) return;
        auto work = held_back_.front();
        held_back_.erase(held_back_.begin());
        work.kind = weight_gradient;
        slots.push_back({work, {}});
    }
    void add_pair(int forward_side) {
        const auto first = next(forward, forward_side);
        slots.push_back({first, next(backward, 1 - forward_side)});
    }

    std::vector<Slot> slots;

  private:
    Work next(WorkKind kind, int side) {
        auto& count = (kind == forward ? forwards_ : backwards_)[side];
        return {kind, stages_[side], count++};
    }

    std::int32_t stages_[2];
    std::int32_t forwards_[2] = {0, 0};
    std::int32_t backwards_[2] = {0, 0};
    std::vector<Work> held_back_;
};

constexpr int kDown = 0, kUp = 1;

// Forward k beside backward k - 1; with room for a third micro-batch, the ends in pairs as well.
std::vector<Slot> one_rank_strands(std::int32_t micro_batches, bool pairs_ends) {
    const std::int32_t lead = pairs_ends && micro_batches > 1 ? 2 : 1;
    const auto work = [](WorkKind kind, std::int32_t k) { return Work{kind, 0, k}; };
    const auto ends = [&](WorkKind kind, std::int32_t k) {
        return lead == 2 ? Slot{work(kind, k), work(kind, k + 1)} : Slot{work(kind, k), {}};
    };
    std::vector<Slot> slots{ends(forward, 0)};
    for (std::int32_t k = lead; k < micro_batches; ++k)
        slots.push_back({work(forward, k), work(backward, k - lead)});
    slots.push_back(ends(backward, micro_batches - lead));
    return slots;
}

// Two weight gradients have nothing to hide behind each other.
bool worth_pairing(const Slot& a, const Slot& b) {
    if (a.second || b.second || a.first.micro_batch == b.first.micro_batch) return false;
    return a.first.kind != weight_gradient || b.first.kind != weight_gradient;
}

// What pairing is taken to gain when the choice is made which neighbours to pair.
constexpr WorkCosts kAssumedCosts{.pair_gain = 1.25};

// Pairs neighbours in the list of each rank where this keeps within memory and makes the step no longer. A rank's
// pair delays what others wait for, so not every pair pays.
void pair_neighbours(ScheduleTable& table, std::int32_t most_pieces) {
    double best_seconds = evaluate(table, kAssumedCosts).step_seconds;
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank)
        for (std::size_t i = 0; i + 1 < table.ranks[rank].size(); ++i) {
            auto& slots = table.ranks[rank];
            if (!worth_pairing(slots[i], slots[i + 1])) continue;
            const auto before = slots;
            slots[i].second = slots[i + 1].first;
            slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            bool keep = std::ranges::max(peak_pieces(table)) <= most_pieces && check_table(table).empty();
            if (keep) {
                const double seconds = evaluate(table, kAssumedCosts).step_seconds;
                keep = seconds <= best_seconds;
                if (keep) best_seconds = seconds;
            }
            if (!keep) slots = before;
        }
}

}  // namespace

RankSlots strands_slots(const PipelineShape& pipeline, std::int32_t micro_batches,
                        std::int32_t memory_micro_batches) {
    const auto ranks = pipeline.ranks;
    const auto least = ranks == 1 ? 2 : ranks + 1;
    const bool has_budget = memory_micro_batches > 0;
    if (has_budget)
        ATOLL_CHECK_LE(least, memory_micro_batches, "strands on {} pipeline ranks can't do with less", ranks);
    if (ranks == 1) return {one_rank_strands(micro_batches, memory_micro_batches > least)};
    ScheduleTable table{pipeline, micro_batches, dualpipev_slots(ranks, micro_batches)};
    if (has_budget) pair_neighbours(table, memory_micro_batches * pipeline.chunks);
    return table.ranks;
}

RankSlots dualpipev_slots(std::int32_t ranks, std::int32_t micro_batches) {
    const auto whole = std::max(micro_batches, 2 * ranks);  // the order needs so many
    RankSlots slots;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        FoldRank mine(rank, ranks);
        const auto behind = ranks - 1 - rank;
        // Fill: down, then down and up in turn.
        for (std::int32_t i = 0; i < 2 * behind; ++i) mine.add_forward(kDown);
        for (std::int32_t i = 0; i <= rank; ++i) {
            mine.add_forward(kDown);
            mine.add_forward(kUp);
        }
        // The first backwards arrive; weight gradients fill the time until the next ones.
        for (std::int32_t i = 0; i < behind; ++i) {
            mine.add_input_gradient(kUp);
            mine.add_weight_gradient();
            mine.add_forward(kUp);
        }
        // The steady part: each direction's forward beside the other's backward.
        for (std::int32_t i = 0; i <= whole - 2 * ranks + rank; ++i) {
            mine.add_pair(kDown);
            mine.add_pair(kUp);
        }
        for (std::int32_t i = 0; i < behind; ++i) {
            mine.add_backward(kUp);
            mine.add_pair(kUp);
        }
        // Drain. In its second half weight gradients are held back, for the gaps at the end.
        for (std::int32_t i = 0; i < 2 * (rank + 1); ++i) {
            const int side = i % 2 == 0 ? kUp : kDown;
            if (i > rank)
                mine.add_input_gradient(side);
            else
                mine.add_backward(side);
        }
        for (std::int32_t i = 0; i < behind; ++i) {
            mine.add_weight_gradient();
            mine.add_input_gradient(kDown);
        }
        for (std::int32_t i = 0; i <= rank; ++i) mine.add_weight_gradient();
        slots.push_back(std::move(mine.slots));
    }
    return without_micro_batches_from(micro_batches, slots);
}

}  // namespace atl
