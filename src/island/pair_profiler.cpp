#include "island/pair_profiler.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <map>

#include "core/short_time_slice.h"
#include "core/statistics.h"
#include "engine/bound_program.h"
#include "island/island_programs.h"
#include "island/loaded_program.h"
#include "island/random_tokens.h"

namespace atl {
namespace {

constexpr double kWindowSeconds = 0.3;  // of one measurement
constexpr int kWarmUps = 5;
constexpr double kLeastSlowdown = 1;  // less is noise: nothing gets faster by company

// A program's ops, each to be called at will. What they compute means nothing.
class OpCalls {
  public:
    OpCalls(const IslandOptions& options, const IslandLinks& links)
        : executor_options_{.threads = options.threads,
                            .collective_timeout = options.collective_timeout,
                            .groups = links.groups,
                            .point_to_point = links.step_messages,
                            .mode = ExecutionMode::serial},
          loaded_(training_program(options, links.rank), options.model, {}, executor_options_),
          bound_(loaded_.program, loaded_.memory, executor_options_) {
        const RandomStream random(0, "profile tokens");
        const std::int64_t micro_batches = options.batch.micro_batches() / options.parallel.dp;
        for (std::int64_t k = 0; k < micro_batches; ++k)
            fill_with_random_tokens(loaded_.inputs(k), options, random,
                                    k * options.batch.micro_batch_tokens());
    }

    void call(OpId op) const { bound_.ops[static_cast<std::size_t>(op.value())].call(); }
    const Program& program() const { return loaded_.program; }

  private:
    ExecutorOptions executor_options_;
    LoadedProgram loaded_;
    BoundProgram bound_;
};

// The op of each class that does most: where ops overlap for long, it is these.
std::map<OpClass, OpId> largest_ops(const Program& program) {
    std::map<OpClass, OpId> largest;
    for (const Op& op : program.ops) {
        const bool is_of_optimizer = op.micro_batch < 0 && op.resource == Resource::compute;
        if (is_point_to_point(op.kind) || is_of_optimizer) continue;
        const OpId best = largest.try_emplace(class_of(op), op.id).first->second;
        const auto work = [](const Op& o) { return std::pair(o.flops, o.bytes); };
        if (work(program.op(best)) < work(op)) largest[class_of(op)] = op.id;
    }
    return largest;
}

class PairProfiler {
  public:
    PairProfiler(const IslandOptions& options, const IslandLinks& links)
        : options_(options), links_(links), calls_(options, links) {}

    std::vector<PairSlowdown> run() {
        const c10::InferenceMode guard;
        const auto largest = shared_by_all(largest_ops(calls_.program()));
        std::map<OpClass, double> alone;
        for (const auto& [op_class, op] : largest)
            if (op_class.resource == Resource::compute) alone[op_class] = seconds_alone(op);
        std::vector<PairSlowdown> pairs;
        for (const auto& [link_class, collective] : largest) {
            if (link_class.resource == Resource::compute) continue;
            const double once = largest_of_ranks(seconds_of_collectives(collective, kWarmUps));
            const int count = static_cast<int>(std::ceil(kWindowSeconds / std::max(once, 1e-6)));
            const double undisturbed = seconds_of_collectives(collective, count);
            for (const auto& [compute_class, compute] : largest) {
                if (compute_class.resource != Resource::compute) continue;
                const Together together = seconds_together(compute, collective, count);
                pairs.push_back(
                    {.first = compute_class,
                     .second = link_class,
                     .first_slowdown = std::max(kLeastSlowdown,
                                                middle_of_ranks(together.compute / alone.at(compute_class))),
                     .second_slowdown =
                         std::max(kLeastSlowdown, largest_of_ranks(together.collective / undisturbed)),
                     .samples = count});
            }
            alone[link_class] = largest_of_ranks(undisturbed);  // all ranks must count alike
        }
        for (const auto& [first_class, first] : largest)
            for (const auto& [second_class, second] : largest)
                if (first_class.resource == Resource::link_intra &&
                    second_class.resource == Resource::link_inter)
                    pairs.push_back(pair_of_links({first_class, first, alone.at(first_class)},
                                                  {second_class, second, alone.at(second_class)}));
        return pairs;
    }

  private:
    struct Together {
        double compute = 0;  // seconds of one
        double collective = 0;
    };
    struct Collective {
        OpClass op_class;
        OpId op;
        double alone = 0;  // seconds
    };

    // Both for about the same time, so that neither is alone for long.
    PairSlowdown pair_of_links(const Collective& first, const Collective& second) const {
        const auto count_of = [](const Collective& collective) {
            return static_cast<int>(std::ceil(kWindowSeconds / std::max(collective.alone, 1e-6)));
        };
        meet();
        auto other = std::async(std::launch::async, [&] { return repeat(second.op, count_of(second)); });
        auto mine = std::async(std::launch::async, [&] { return repeat(first.op, count_of(first)); });
        const double first_seconds = mine.get(), second_seconds = other.get();
        return {.first = first.op_class,
                .second = second.op_class,
                .first_slowdown = std::max(kLeastSlowdown, largest_of_ranks(first_seconds / first.alone)),
                .second_slowdown = std::max(kLeastSlowdown, largest_of_ranks(second_seconds / second.alone)),
                .samples = std::min(count_of(first), count_of(second))};
    }

    // Stages may differ in what they have, and all ranks must measure the same.
    std::map<OpClass, OpId> shared_by_all(std::map<OpClass, OpId> largest) const {
        const auto name_of = [](const OpClass& c) {
            return fmt::format("{} {}\n", name(c.family), name(c.resource));
        };
        std::string mine;
        for (const auto& [op_class, op] : largest) mine += name_of(op_class);
        const auto all = links_.world->all_gather(mine, options_.collective_timeout);
        std::erase_if(largest, [&](const auto& entry) {
            return std::ranges::any_of(all, [&](const std::string& text) {
                return text.find(name_of(entry.first)) == std::string::npos;
            });
        });
        return largest;
    }

    double now() const { return seconds(clock_.now().time_since_epoch()); }
    // So that no rank measures while another still does something else.
    void meet() const { links_.world->barrier(options_.collective_timeout); }

    double seconds_alone(OpId op) const {
        for (int i = 0; i < kWarmUps; ++i) calls_.call(op);
        meet();
        const double begin = now();
        std::int64_t count = 0;
        do {
            calls_.call(op);
            ++count;
        } while (now() - begin < kWindowSeconds);
        return (now() - begin) / static_cast<double>(count);
    }

    // Of one, on a thread like that of a link.
    double seconds_of_collectives(OpId op, int count) const {
        meet();
        return std::async(std::launch::async, [&] { return repeat(op, count); }).get();
    }
    double repeat(OpId op, int count) const {
        const ShortTimeSlice prompt;
        const double begin = now();
        for (int i = 0; i < count; ++i) calls_.call(op);
        return (now() - begin) / count;
    }

    Together seconds_together(OpId compute, OpId collective, int count) const {
        meet();
        auto link = std::async(std::launch::async, [&] { return repeat(collective, count); });
        const double begin = now();
        std::int64_t done = 0;
        double end = begin;
        while (link.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            calls_.call(compute);
            ++done;
            end = now();
        }
        return {.compute = (end - begin) / static_cast<double>(std::max<std::int64_t>(done, 1)),
                .collective = link.get()};  // or what went wrong on its thread
    }

    std::vector<double> of_all_ranks(double value) const {
        std::string bytes(sizeof value, '\0');
        std::memcpy(bytes.data(), &value, sizeof value);
        std::vector<double> all;
        for (const std::string& text : links_.world->all_gather(bytes, options_.collective_timeout))
            std::memcpy(&all.emplace_back(), text.data(), sizeof value);
        return all;
    }
    double largest_of_ranks(double value) const { return std::ranges::max(of_all_ranks(value)); }
    double middle_of_ranks(double value) const { return median(of_all_ranks(value)); }

    const IslandOptions& options_;
    const IslandLinks& links_;
    OpCalls calls_;
    SystemClock clock_;
};

}  // namespace

std::vector<PairSlowdown> measure_pairs(const IslandOptions& options, const IslandLinks& links) {
    return PairProfiler(options, links).run();
}

}  // namespace atl
