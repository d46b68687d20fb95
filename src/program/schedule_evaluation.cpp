#include "program/schedule_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/check.h"

namespace atl {
namespace {

using enum WorkKind;
constexpr std::size_t kWorkKinds = 4;

struct Place {
    std::size_t rank = 0;
    std::size_t slot = 0;
};

template <class Visit>
void for_each_work(const Slot& slot, Visit&& visit) {
    visit(slot.first);
    if (slot.second) visit(*slot.second);
}

bool gives_input_gradient(WorkKind kind) {
    return kind == backward || kind == input_gradient;
}

// Where each piece of work stands; a backward under both of its halves.
class Places {
  public:
    explicit Places(const ScheduleTable& table)
        : table_(table),
          places_(kWorkKinds * static_cast<std::size_t>(table.pipeline.stages() * table.micro_batches)) {
        for (std::size_t rank = 0; rank < table.ranks.size(); ++rank)
            for (std::size_t i = 0; i < table.ranks[rank].size(); ++i)
                for_each_work(table.ranks[rank][i], [&](Work work) {
                    if (work.kind != backward) return add(work, {rank, i});
                    for (const auto half : {input_gradient, weight_gradient}) {
                        work.kind = half;
                        add(work, {rank, i});
                    }
                });
    }

    // The slots that this work needs; those that don't exist are left out.
    std::vector<Place> needed_by(const Work& work) const {
        std::vector<Place> needed;
        const auto need = [&](WorkKind kind, std::int32_t stage) {
            if (stage < 0 || stage >= table_.pipeline.stages()) return;
            if (const auto& place = places_[index({kind, stage, work.micro_batch})]) needed.push_back(*place);
        };
        if (work.kind == forward) need(forward, work.stage - 1);
        if (gives_input_gradient(work.kind)) {
            need(forward, work.stage);
            need(input_gradient, work.stage + 1);
        }
        if (work.kind == weight_gradient) need(input_gradient, work.stage);
        return needed;
    }
    bool contains(const Work& work) const { return places_[index(work)].has_value(); }
    const std::vector<Work>& repeated() const { return repeated_; }
    const Slot& slot(const Place& place) const { return table_.ranks[place.rank][place.slot]; }

  private:
    void add(const Work& work, const Place& place) {
        auto& known = places_[index(work)];
        if (known) repeated_.push_back(work);
        known = place;
    }
    std::size_t index(const Work& work) const {
        const auto stages = static_cast<std::size_t>(table_.pipeline.stages());
        const auto row = static_cast<std::size_t>(work.kind) * stages + static_cast<std::size_t>(work.stage);
        return row * static_cast<std::size_t>(table_.micro_batches) +
               static_cast<std::size_t>(work.micro_batch);
    }

    const ScheduleTable& table_;
    std::vector<std::optional<Place>> places_;  // by index(work)
    std::vector<Work> repeated_;
};

// Walks the slots in an order that the needs allow: visit(place, needed places). Returns, per rank, how many slots it
// got through.
template <class Visit>
std::vector<std::size_t> walk(const ScheduleTable& table, const Places& places, Visit&& visit) {
    std::vector<std::size_t> done(table.ranks.size(), 0);
    bool moved = true;
    while (moved) {
        moved = false;
        for (std::size_t rank = 0; rank < table.ranks.size(); ++rank)
            while (done[rank] < table.ranks[rank].size()) {
                const Place here{rank, done[rank]};
                std::vector<Place> needed;
                for_each_work(places.slot(here), [&](const Work& work) {
                    for (const auto& place : places.needed_by(work)) needed.push_back(place);
                });
                const bool ready = std::ranges::all_of(
                    needed, [&](const Place& place) { return place.slot < done[place.rank]; });
                if (!ready) break;
                visit(here, needed);
                ++done[rank];
                moved = true;
            }
    }
    return done;
}

void check_completeness(const ScheduleTable& table, const Places& places,
                        std::vector<std::string>& problems) {
    for (const auto& work : places.repeated())
        problems.push_back(fmt::format("{} is done twice", print(work)));
    for (std::int32_t stage = 0; stage < table.pipeline.stages(); ++stage)
        for (std::int32_t k = 0; k < table.micro_batches; ++k)
            for (const auto kind : {forward, input_gradient, weight_gradient})
                if (const Work work{kind, stage, k}; !places.contains(work))
                    problems.push_back(fmt::format("nobody does {}", print(work)));
}

// Right rank, known stage and micro-batch; gradients in order.
void check_rank(const ScheduleTable& table, std::size_t rank, std::vector<std::string>& problems) {
    std::map<std::pair<WorkKind, std::int32_t>, std::int32_t> newest;  // [half of backward, stage]
    const auto report = [&](const Slot& slot, const std::string& problem) {
        problems.push_back(fmt::format("rank {}: {}: {}", rank, print(slot), problem));
    };
    for (const auto& slot : table.ranks[rank]) {
        if (slot.second && slot.second->micro_batch == slot.first.micro_batch)
            report(slot, "both strands are of one micro-batch");
        for_each_work(slot, [&](const Work& work) {
            if (work.stage < 0 || work.stage >= table.pipeline.stages() || work.micro_batch < 0 ||
                work.micro_batch >= table.micro_batches)
                return report(slot, "there is no such stage or micro-batch");
            if (table.pipeline.rank_of(work.stage) != static_cast<std::int32_t>(rank))
                report(slot,
                       fmt::format("stage {} is rank {}'s", work.stage, table.pipeline.rank_of(work.stage)));
            for (const auto half : {input_gradient, weight_gradient}) {
                if (work.kind != half && work.kind != backward) continue;
                const auto [place, is_first] = newest.try_emplace({half, work.stage}, work.micro_batch);
                if (!is_first && place->second > work.micro_batch)
                    report(slot, fmt::format("comes behind micro-batch {}; gradients are added in order",
                                             place->second));
                place->second = work.micro_batch;
            }
        });
    }
}

}  // namespace

double WorkCosts::seconds(const Work& work) const {
    const double scale = stage_scale.empty() ? 1 : stage_scale.at(static_cast<std::size_t>(work.stage));
    switch (work.kind) {
        case forward:
            return scale * forward_seconds;
        case backward:
            return scale * (input_gradient_seconds + weight_gradient_seconds);
        case input_gradient:
            return scale * input_gradient_seconds;
        case weight_gradient:
            break;
    }
    return scale * weight_gradient_seconds;
}

double WorkCosts::seconds(const Slot& slot) const {
    return slot.second ? (seconds(slot.first) + seconds(*slot.second)) / pair_gain : seconds(slot.first);
}

double ScheduleEvaluation::bubble_share() const {
    const double busy = std::accumulate(busy_seconds.begin(), busy_seconds.end(), 0.0);
    return 1 - busy / (step_seconds * static_cast<double>(busy_seconds.size()));
}

std::vector<std::string> check_table(const ScheduleTable& table) {
    std::vector<std::string> problems;
    if (std::ssize(table.ranks) != table.pipeline.ranks)
        return {
            fmt::format("the table has {} ranks, the pipeline {}", table.ranks.size(), table.pipeline.ranks)};
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) check_rank(table, rank, problems);
    if (!problems.empty()) return problems;
    const Places places(table);
    check_completeness(table, places, problems);
    const auto done = walk(table, places, [](const Place&, const std::vector<Place>&) {});
    for (std::size_t rank = 0; rank < done.size(); ++rank)
        if (done[rank] < table.ranks[rank].size())
            problems.push_back(fmt::format("rank {}: {} waits for work that waits for it", rank,
                                           print(table.ranks[rank][done[rank]])));
    return problems;
}

ScheduleEvaluation evaluate(const ScheduleTable& table, const WorkCosts& costs) {
    ScheduleEvaluation result;
    for (const auto& slots : table.ranks) result.slots.emplace_back(slots.size());
    result.busy_seconds.resize(table.ranks.size(), 0);
    result.peak_pieces = peak_pieces(table);
    const Places places(table);
    std::vector<double> free_from(table.ranks.size(), 0);
    const auto done = walk(table, places, [&](const Place& here, const std::vector<Place>& needed) {
        auto& time = result.slots[here.rank][here.slot];
        time.start_seconds = free_from[here.rank];
        for (const auto& place : needed) {
            const double transfer = place.rank == here.rank ? 0 : costs.transfer_seconds;
            time.start_seconds =
                std::max(time.start_seconds, result.slots[place.rank][place.slot].end_seconds + transfer);
        }
        const double duration = costs.seconds(places.slot(here));
        time.end_seconds = free_from[here.rank] = time.start_seconds + duration;
        result.busy_seconds[here.rank] += duration;
        result.step_seconds = std::max(result.step_seconds, time.end_seconds);
    });
    for (std::size_t rank = 0; rank < done.size(); ++rank)
        ATOLL_CHECK_EQ(done[rank], table.ranks[rank].size(), "rank {} waits for itself", rank);
    return result;
}

std::vector<std::int32_t> peak_pieces(const ScheduleTable& table) {
    std::vector<std::int32_t> peaks;
    for (const auto& slots : table.ranks) {
        std::int32_t held = 0;
        auto& peak = peaks.emplace_back(0);
        for (const auto& slot : slots) {
            for_each_work(slot, [&](const Work& work) { held += work.kind == forward; });
            peak = std::max(peak, held);
            for_each_work(slot, [&](const Work& work) {
                held -= work.kind == backward || work.kind == weight_gradient;
            });
        }
    }
    return peaks;
}

}  // namespace atl
