#include "program/pair_planner.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace atl {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// Ops [first_begin, first_end) and [second_begin, second_end) of a pair, counted in each strand.
struct Chain {
    std::size_t first_begin = 0, first_end = 0;
    std::size_t second_begin = 0, second_end = 0;
};

// Boundaries of `parts` runs of whole layers, in ops.
std::vector<std::size_t> boundaries(const LayerOps& layers, std::size_t parts) {
    std::vector<std::size_t> ends{0};
    std::size_t ops = 0, layer = 0;
    for (std::size_t part = 1; part <= parts; ++part) {
        for (; layer < part * layers.size() / parts; ++layer) ops += layers[layer].size();
        ends.push_back(ops);
    }
    return ends;
}

std::vector<Chain> cut(const LayerOps& first, const LayerOps& second, std::int32_t chain_layers) {
    const auto layers = std::max(first.size(), second.size());
    // Chains of nearly as many layers as wanted; a few more rather than a short rest.
    const auto parts = std::max<std::size_t>(layers / static_cast<std::size_t>(chain_layers), 1);
    const auto of_first = boundaries(first, parts), of_second = boundaries(second, parts);
    std::vector<Chain> chains;
    for (std::size_t i = 0; i < parts; ++i)
        chains.push_back({of_first[i], of_first[i + 1], of_second[i], of_second[i + 1]});
    return chains;
}

// The chain's ops as a pair of its own; numbers[i]: of its i-th op in the whole pair.
StrandPair part_of(const StrandPair& pair, const Chain& chain, std::vector<std::int32_t>& numbers) {
    const auto begin = static_cast<std::int32_t>(pair.first_ops);
    numbers.clear();
    for (auto i = chain.first_begin; i < chain.first_end; ++i)
        numbers.push_back(static_cast<std::int32_t>(i));
    for (auto i = chain.second_begin; i < chain.second_end; ++i)
        numbers.push_back(begin + static_cast<std::int32_t>(i));
    std::vector<std::int32_t> local(pair.ops.size(), -1);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        local[static_cast<std::size_t>(numbers[i])] = static_cast<std::int32_t>(i);
    const auto localized = [&](const std::vector<std::int32_t>& ops) {
        std::vector<std::int32_t> found;
        for (const auto op : ops)
            if (local[static_cast<std::size_t>(op)] >= 0)
                found.push_back(local[static_cast<std::size_t>(op)]);
        return found;
    };
    StrandPair part;
    part.first_ops = chain.first_end - chain.first_begin;
    for (const auto number : numbers) {
        part.ops.push_back(pair.ops[static_cast<std::size_t>(number)]);
        part.ops.back().waits_for = localized(part.ops.back().waits_for);
    }
    for (const auto& value : pair.values) {
        PairValue here{.bytes = value.bytes, .touched_by = localized(value.touched_by)};
        if (here.touched_by.empty()) continue;
        if (value.written_by >= 0) here.written_by = local[static_cast<std::size_t>(value.written_by)];
        here.dies = value.dies &&
                    value.touched_by.back() == numbers[static_cast<std::size_t>(here.touched_by.back())];
        if (here.dies || here.written_by >= 0) part.values.push_back(std::move(here));
    }
    return part;
}

// Bytes that live more at the end than at the start.
std::int64_t net_bytes(const StrandPair& pair) {
    std::int64_t bytes = 0;
    for (const auto& value : pair.values)
        bytes += (value.written_by >= 0 ? value.bytes : 0) - (value.dies ? value.bytes : 0);
    return bytes;
}

bool alike(const StrandPair& a, const StrandPair& b) {
    const auto same_op = [](const PairOp& x, const PairOp& y) {
        return x.strand == y.strand && x.op_class == y.op_class && x.seconds == y.seconds &&
               x.waits_for == y.waits_for && x.movable == y.movable;
    };
    const auto same_value = [](const PairValue& x, const PairValue& y) {
        return x.bytes == y.bytes && x.written_by == y.written_by && x.touched_by == y.touched_by &&
               x.dies == y.dies;
    };
    return a.first_ops == b.first_ops && std::ranges::equal(a.ops, b.ops, same_op) &&
           std::ranges::equal(a.values, b.values, same_value);
}

class Planner {
  public:
    Planner(const StrandPair& pair, const OverlapModel& overlap, const PairPlannerOptions& options,
            std::int64_t most_bytes)
        : pair_(pair), overlap_(overlap), options_(options), most_bytes_(most_bytes) {}

    // Nothing if the bytes don't do.
    std::optional<OrderFound> run(const std::vector<Chain>& chains) {
        OrderFound whole;
        std::vector<std::pair<std::size_t, std::size_t>> seams;
        std::int64_t live = 0;
        for (const auto& chain : chains) {
            std::vector<std::int32_t> numbers;
            const auto part = part_of(pair_, chain, numbers);
            const auto found = plan_chain(part, most_bytes_ == kUnbounded ? kUnbounded : most_bytes_ - live);
            if (!found) return std::nullopt;
            for (const auto op : found->order) whole.order.push_back(numbers[static_cast<std::size_t>(op)]);
            whole.seconds += found->seconds;
            live += net_bytes(part);
            const auto end = whole.order.size();
            seams.emplace_back(end < kSeam ? 0 : end - kSeam, end + kSeam);
        }
        if (options_.has_barriers) return whole;
        seams.pop_back();
        const auto trials = seams.empty() ? 0 : options_.most_trials / 16;
        return search_order(pair_, overlap_, whole.order,
                            {.most_trials = trials, .reach = 10, .most_bytes = most_bytes_, .places = seams});
    }

  private:
    static constexpr std::size_t kSeam = 6;

    struct Known {
        StrandPair pair;
        std::int64_t most_bytes;
        std::optional<OrderFound> found;
    };

    std::optional<OrderFound> plan_chain(const StrandPair& part, std::int64_t most_bytes) {
        for (const auto& known : known_)
            if (known.most_bytes == most_bytes && alike(known.pair, part)) return known.found;
        const double layers_share = 2.0 / std::max(options_.chain_layers, 2);
        const auto segments = search_segments(part, overlap_,
                                              {.longest_segment = options_.longest_segment,
                                               .moves_weight_gradients = options_.moves_weight_gradients,
                                               .barrier_seconds = options_.barrier_seconds,
                                               .most_bytes = most_bytes,
                                               .band = layers_share});
        std::optional<OrderFound> found;
        if (segments) found = {segments->order(), segments->seconds};
        if (segments && !options_.has_barriers)
            found =
                search_order(part, overlap_, segments->order(),
                             {.most_trials = options_.most_trials, .most_bytes = most_bytes, .places = {}});
        known_.push_back({part, most_bytes, found});
        return found;
    }

    const StrandPair& pair_;
    const OverlapModel& overlap_;
    const PairPlannerOptions& options_;
    std::int64_t most_bytes_;
    std::vector<Known> known_;
};

// The serial order's peak, and what a layer of the first strand saves for its own backward, so many times.
std::int64_t byte_budget(const StrandPair& pair, const LayerOps& first, double spare_layers) {
    std::vector<std::int32_t> serial;
    for (auto i = pair.first_ops; i < pair.ops.size(); ++i) serial.push_back(static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < pair.first_ops; ++i) serial.push_back(static_cast<std::int32_t>(i));
    std::int64_t saved = 0;
    for (const auto& value : pair.values)
        if (value.written_by >= 0 && !value.dies) saved += value.bytes;
    const double of_layer =
        static_cast<double>(saved) / static_cast<double>(std::max<std::size_t>(first.size(), 1));
    return peak_bytes(pair, serial) + static_cast<std::int64_t>(spare_layers * of_layer);
}

std::vector<std::int32_t> numbers_of(const StrandPair& pair, const std::vector<OpId>& order) {
    std::map<OpId, std::int32_t> numbers;
    for (std::size_t i = 0; i < pair.ops.size(); ++i) numbers[pair.ops[i].id] = static_cast<std::int32_t>(i);
    std::vector<std::int32_t> found;
    for (const auto id : order) found.push_back(numbers.at(id));
    return found;
}

}  // namespace

PairPlan plan_pair(const Program& program, const LayerOps& first, const LayerOps& second,
                   const std::vector<double>& seconds, const OverlapModel& overlap,
                   const PairPlannerOptions& options) {
    const auto pair = make_strand_pair(program, first, second, seconds);
    const bool is_bounded = options.bounds_memory && !pair.shares_writes;
    PairPlan plan{.order = numbers_of(pair, interleave(program, first, second)),
                  .serial_seconds = serial_seconds(pair),
                  .busiest_seconds = busiest_seconds(pair),
                  .most_bytes = is_bounded ? byte_budget(pair, first, options.spare_layers) : -1};
    plan.seconds = StrandClock(pair, overlap).run(plan.order);
    if (!pair.shares_writes) {
        const auto most_bytes = is_bounded ? plan.most_bytes : kUnbounded;
        auto found =
            Planner(pair, overlap, options, most_bytes).run(cut(first, second, options.chain_layers));
        const bool alternation_fits = peak_bytes(pair, plan.order) <= most_bytes;
        if (found && (found->seconds < plan.seconds || options.has_barriers || !alternation_fits)) {
            plan.order = std::move(found->order);
            plan.seconds = found->seconds;
        }
    }
    plan.peak_bytes = peak_bytes(pair, plan.order);
    return plan;
}

}  // namespace atl
