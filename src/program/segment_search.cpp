#include "program/segment_search.h"

#include <algorithm>
#include <bit>
#include <map>

#include "core/check.h"

namespace atl {
namespace {

constexpr std::int32_t kPending = 4;  // weight gradients that may wait at once
constexpr std::size_t kSubsets = 1 << kPending;
constexpr double kNever = std::numeric_limits<double>::infinity();

// How the best way to a state came there.
struct Step {
    std::int16_t first = 0, second = 0;  // ops taken
    std::uint8_t weights = 0;            // run
    std::uint8_t pending_before = 0;
};

class Search {
  public:
    Search(const StrandPair& pair, const OverlapModel& overlap, const SegmentSearchOptions& options)
        : pair_(pair), options_(options), clock_(pair, overlap) {
        ATOLL_CHECK(!pair.shares_writes, "strands that wait for each other");
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(pair.ops.size()); ++i) {
            const auto& op = pair.ops[static_cast<std::size_t>(i)];
            if (op.movable && op.strand == 1 && options.moves_weight_gradients) {
                weights_.push_back(i);
            } else {
                chain_[op.strand].push_back(i);
            }
        }
        std::ranges::stable_sort(weights_, {}, [&](std::int32_t w) { return release_of(w); });
        for (const auto w : weights_) released_at_.push_back(release_of(w));
        rows_ = chain_[0].size() + 1;
        columns_ = chain_[1].size() + 1;
        for (int strand = 0; strand < 2; ++strand) number_segments(strand);
        number_subsets();
        seconds_.resize(links_[0].size() * links_[1].size());
        band_ =
            std::max(options.band, 2.0 / static_cast<double>(rows_) + 2.0 / static_cast<double>(columns_));
        if (rows_ == 1 || columns_ == 1) band_ = 1;
        measure_bytes();
    }

    std::optional<SegmentPlan> run() {
        best_.assign(rows_ * columns_ * kSubsets, kNever);
        steps_.resize(best_.size());
        if (free_.front() > static_cast<std::size_t>(kPending)) return std::nullopt;
        best_[state(0, 0, (std::size_t{1} << free_.front()) - 1)] = 0;  // what waits for nothing in the pair
        for (std::size_t i = 0; i < rows_; ++i)
            for (std::size_t j = 0; j < columns_; ++j) {
                // Weight gradients alone lead from a subset to smaller ones.
                for (std::size_t pending = kSubsets; pending-- > 0;)
                    if (best_[state(i, j, pending)] < kNever) extend(i, j, pending);
            }
        if (best_[state(rows_ - 1, columns_ - 1, 0)] == kNever) return std::nullopt;
        return trace_back();
    }

  private:
    std::size_t state(std::size_t i, std::size_t j, std::size_t pending) const {
        return (i * columns_ + j) * kSubsets + pending;
    }

    // After how many of its strand's chain ops a weight gradient is free; all it waits for stands in the chain.
    std::int32_t release_of(std::int32_t weight) const {
        const auto& op = pair_.ops[static_cast<std::size_t>(weight)];
        std::int32_t last = -1;
        for (const auto earlier : op.waits_for) last = std::max(last, earlier);
        const auto& chain = chain_[op.strand];
        return static_cast<std::int32_t>(std::ranges::upper_bound(chain, last) - chain.begin());
    }

    // Ops that take equally long and are of one class are alike to blocks.
    std::vector<std::int32_t> class_numbers(const std::vector<std::int32_t>& ops) {
        std::vector<std::int32_t> numbers;
        for (const auto i : ops) {
            const auto& op = pair_.ops[static_cast<std::size_t>(i)];
            numbers.push_back(
                op_classes_
                    .try_emplace({op.op_class, op.seconds}, static_cast<std::int32_t>(op_classes_.size()))
                    .first->second);
        }
        return numbers;
    }

    // segment_[strand][begin][length]: a number for its content; -1: it may not be, or goes too far.
    void number_segments(int strand) {
        const auto& chain = chain_[strand];
        const auto classes = class_numbers(chain);
        const auto longest = static_cast<std::size_t>(options_.longest_segment);
        auto& segments = segment_[strand];
        segments.assign(chain.size() + 1, std::vector<std::int32_t>(longest + 1, -1));
        std::map<std::vector<std::int32_t>, std::int32_t> numbers;
        for (std::size_t begin = 0; begin <= chain.size(); ++begin) {
            std::vector<std::int32_t> content;
            std::uint32_t links = 0;
            for (std::size_t length = 0; length <= longest && begin + length <= chain.size(); ++length) {
                if (length > 0) {
                    const auto& op = pair_.ops[static_cast<std::size_t>(chain[begin + length - 1])];
                    const std::uint32_t link = 1U << static_cast<unsigned>(op.op_class.resource);
                    if (op.communicates() && (links & link) != 0) break;
                    if (op.communicates()) links |= link;
                    content.push_back(classes[begin + length - 1]);
                }
                const auto [found, is_new] =
                    numbers.try_emplace(content, static_cast<std::int32_t>(numbers.size()));
                segments[begin][length] = found->second;
                if (is_new) links_[strand].push_back(links);
            }
        }
    }

    // subset_[free][subset]: a number for the content of pending weight gradients when so many are free.
    void number_subsets() {
        for (std::size_t j = 0; j < columns_; ++j)
            free_.push_back(static_cast<std::size_t>(
                std::ranges::upper_bound(released_at_, static_cast<std::int32_t>(j)) - released_at_.begin()));
        const auto classes = class_numbers(weights_);
        std::map<std::vector<std::int32_t>, std::int32_t> numbers;
        for (std::size_t free = 0; free <= weights_.size(); ++free)
            for (std::size_t subset = 0; subset < kSubsets; ++subset) {
                std::vector<std::int32_t> content;
                for (std::size_t w = free > kPending ? free - kPending : 0; w < free; ++w)
                    if ((subset >> (w % kPending) & 1) != 0) content.push_back(classes[w]);
                subset_.push_back(
                    numbers.try_emplace(content, static_cast<std::int32_t>(numbers.size())).first->second);
            }
        subset_contents_ = numbers.size();
    }

    // Bytes of a state: by how far each strand is, and by what pending weight gradients keep.
    void measure_bytes() {
        const auto position = [&](std::int32_t op) {  // in its chain, counted from 1; 0 for a weight gradient
            const auto& chain = chain_[pair_.ops[static_cast<std::size_t>(op)].strand];
            const auto found = std::ranges::lower_bound(chain, op);
            return found != chain.end() && *found == op ? static_cast<std::size_t>(found - chain.begin()) + 1
                                                        : 0;
        };
        for (int strand = 0; strand < 2; ++strand) live_[strand].assign(chain_[strand].size() + 2, 0);
        kept_bytes_.assign(weights_.size(), 0);
        for (const auto& value : pair_.values) {
            const int strand = pair_.ops[static_cast<std::size_t>(value.touched_by.front())].strand;
            std::size_t last = 0;
            for (const auto op : value.touched_by) last = std::max(last, position(op));
            for (std::size_t w = 0; w < weights_.size(); ++w) {
                if (std::ranges::find(value.touched_by, weights_[w]) == value.touched_by.end()) continue;
                last = std::max(last, static_cast<std::size_t>(released_at_[w]));
                if (value.dies) kept_bytes_[w] += value.bytes;
            }
            auto& live = live_[strand];
            if (value.written_by >= 0) live[position(value.written_by)] += value.bytes;
            if (value.dies && last + 1 < live.size()) live[last + 1] -= value.bytes;
        }
        for (auto& live : live_)
            for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
    }

    // While ops [i, i + a) and [j, j + c) run: each strand at its fullest.
    bool fits(std::size_t i, std::size_t a, std::size_t j, std::size_t c, std::size_t pending) const {
        if (options_.most_bytes == std::numeric_limits<std::int64_t>::max()) return true;
        std::int64_t bytes = 0;
        const auto fullest = [&](int strand, std::size_t begin, std::size_t count) {
            std::int64_t most = live_[strand][begin];
            for (std::size_t k = 1; k <= count; ++k) most = std::max(most, live_[strand][begin + k]);
            return most;
        };
        bytes = fullest(0, i, a) + fullest(1, j, c);
        for (std::size_t w = 0; w < weights_.size(); ++w)
            if (is_pending(w, j, pending)) bytes += kept_bytes_[w];
        return bytes <= options_.most_bytes;
    }

    // Weight gradients that are free when `j` chain ops are done: the first free_[j]. Bit w mod 4 of a subset speaks for
    // the newest of these.
    bool is_pending(std::size_t w, std::size_t j, std::size_t pending) const {
        const auto free = free_[j];
        return w < free && w + kPending >= free && (pending >> (w % kPending) & 1) != 0;
    }

    void extend(std::size_t i, std::size_t j, std::size_t pending) {
        const auto longest = static_cast<std::size_t>(options_.longest_segment);
        for (std::size_t a = 0; a <= longest && i + a < rows_; ++a) {
            if (segment_[0][i][a] < 0) break;
            for (std::size_t c = 0; c <= longest && j + c < columns_; ++c) {
                if (segment_[1][j][c] < 0) break;
                if (in_band(i + a, j + c) && may_pair(i, a, j, c)) extend_by(i, a, j, c, pending);
            }
        }
    }

    bool in_band(std::size_t i, std::size_t j) const {
        const double first =
            static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(rows_ - 1, 1));
        const double second =
            static_cast<double>(j) / static_cast<double>(std::max<std::size_t>(columns_ - 1, 1));
        return std::abs(first - second) <= band_;
    }
    bool may_pair(std::size_t i, std::size_t a, std::size_t j, std::size_t c) const {
        const auto first = static_cast<std::size_t>(segment_[0][i][a]);
        const auto second = static_cast<std::size_t>(segment_[1][j][c]);
        return (links_[0][first] & links_[1][second]) == 0;
    }

    void extend_by(std::size_t i, std::size_t a, std::size_t j, std::size_t c, std::size_t pending) {
        // What becomes free takes the place of older ones, which must then have run.
        std::size_t appearing = 0;
        for (std::size_t w = free_[j]; w < free_[j + c]; ++w) {
            const std::size_t bit = std::size_t{1} << (w % kPending);
            if ((appearing & bit) != 0) return;  // a block that frees more than can wait
            appearing |= bit;
        }
        if (!fits(i, a, j, c, pending)) return;
        const double before = best_[state(i, j, pending)];
        for (std::size_t weights = pending;; weights = (weights - 1) & pending) {
            const std::size_t left = pending & ~weights;
            if ((left & appearing) == 0 && (a + c > 0 || weights != 0)) {
                const double seconds = before + block_seconds(i, a, j, c, weights) + options_.barrier_seconds;
                const auto next = state(i + a, j + c, left | appearing);
                if (seconds < best_[next]) {
                    best_[next] = seconds;
                    steps_[next] = {static_cast<std::int16_t>(a), static_cast<std::int16_t>(c),
                                    static_cast<std::uint8_t>(weights), static_cast<std::uint8_t>(pending)};
                }
            }
            if (weights == 0) break;
        }
    }

    std::vector<std::int32_t> weights_of(std::size_t j, std::size_t subset) const {
        std::vector<std::int32_t> ops;
        for (std::size_t w = 0; w < weights_.size(); ++w)
            if (is_pending(w, j, subset)) ops.push_back(weights_[w]);
        return ops;
    }

    std::span<const std::int32_t> part(int strand, std::size_t begin, std::size_t count) const {
        return std::span(chain_[strand]).subspan(begin, count);
    }

    double block_seconds(std::size_t i, std::size_t a, std::size_t j, std::size_t c, std::size_t weights) {
        const auto first = static_cast<std::size_t>(segment_[0][i][a]);
        const auto second = static_cast<std::size_t>(segment_[1][j][c]);
        auto& known = seconds_[first * links_[1].size() + second];
        if (known.empty()) known.assign(subset_contents_, -1);
        double& seconds = known[static_cast<std::size_t>(subset_[free_[j] * kSubsets + weights])];
        if (seconds < 0)
            seconds = make_block(clock_, pair_, part(0, i, a), part(1, j, c), weights_of(j, weights)).seconds;
        return seconds;
    }

    SegmentPlan trace_back() {
        SegmentPlan plan;
        std::size_t i = rows_ - 1, j = columns_ - 1, pending = 0;
        plan.seconds = best_[state(i, j, pending)];
        while (i > 0 || j > 0 || pending != (std::size_t{1} << free_.front()) - 1) {
            const auto step = steps_[state(i, j, pending)];
            i -= static_cast<std::size_t>(step.first);
            j -= static_cast<std::size_t>(step.second);
            pending = step.pending_before;
            plan.blocks.push_back(make_block(clock_, pair_, part(0, i, static_cast<std::size_t>(step.first)),
                                             part(1, j, static_cast<std::size_t>(step.second)),
                                             weights_of(j, step.weights)));
        }
        std::ranges::reverse(plan.blocks);
        return plan;
    }

    const StrandPair& pair_;
    const SegmentSearchOptions options_;
    StrandClock clock_;
    std::array<std::vector<std::int32_t>, 2> chain_;
    std::vector<std::int32_t> weights_;      // movable, in the order in which they become free
    std::vector<std::int32_t> released_at_;  // [weight gradient]: chain ops done
    std::vector<std::size_t> free_;          // [chain ops done]: how many weight gradients are free
    std::vector<std::int32_t> subset_;
    std::size_t subset_contents_ = 0;
    double band_ = 1;
    std::map<std::pair<OpClass, double>, std::int32_t> op_classes_;
    std::array<std::vector<std::vector<std::int32_t>>, 2> segment_;
    std::array<std::vector<std::uint32_t>, 2> links_;  // [segment number]: which links it uses
    std::array<std::vector<std::int64_t>, 2> live_;    // [ops done]: while the last of them runs
    std::vector<std::int64_t> kept_bytes_;             // [weight gradient]: while it is pending
    std::size_t rows_ = 0, columns_ = 0;
    std::vector<double> best_;
    std::vector<Step> steps_;
    std::vector<std::vector<double>>
        seconds_;  // [first segment, second segment][subset]: of blocks, -1 = unknown
};

// The first `count` ops of a run, up to and with its communication.
std::size_t through_communication(const StrandPair& pair, std::span<const std::int32_t> run) {
    const auto communicates = [&](std::int32_t op) {
        return pair.ops[static_cast<std::size_t>(op)].communicates();
    };
    const auto found = std::ranges::find_if(run, communicates);
    return found == run.end() ? 0 : static_cast<std::size_t>(found - run.begin()) + 1;
}

}  // namespace

StrandBlock make_block(StrandClock& clock, const StrandPair& pair, std::span<const std::int32_t> first,
                       std::span<const std::int32_t> second, std::span<const std::int32_t> weights) {
    StrandBlock best{.order = {}, .seconds = kNever};
    const auto consider = [&](std::span<const std::int32_t> sooner, std::span<const std::int32_t> later) {
        const auto head = through_communication(pair, sooner);
        std::vector<std::int32_t> order(sooner.begin(), sooner.begin() + static_cast<std::ptrdiff_t>(head));
        order.insert(order.end(), later.begin(), later.end());
        order.insert(order.end(), weights.begin(), weights.end());
        order.insert(order.end(), sooner.begin() + static_cast<std::ptrdiff_t>(head), sooner.end());
        const double seconds = clock.run(order, best.seconds);
        if (seconds < best.seconds) best = {std::move(order), seconds};
    };
    consider(first, second);
    if (!first.empty() && through_communication(pair, second) > 0) consider(second, first);
    return best;
}

std::vector<std::int32_t> SegmentPlan::order() const {
    std::vector<std::int32_t> order;
    for (const auto& block : blocks) order.insert(order.end(), block.order.begin(), block.order.end());
    return order;
}

std::optional<SegmentPlan> search_segments(const StrandPair& pair, const OverlapModel& overlap,
                                           const SegmentSearchOptions& options) {
    return Search(pair, overlap, options).run();
}

}  // namespace atl
