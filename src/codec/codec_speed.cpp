#include "codec/codec_speed.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "codec/codec.h"
#include "core/check.h"
#include "core/random.h"

namespace atl {

namespace {

constexpr std::size_t kChunkElements = 64 * 1024;

struct Memory {
    explicit Memory(std::int64_t elements) : values(static_cast<std::size_t>(elements)), sum(values.size()) {
        const RandomStream random(1, "codec speed");
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
    }
    template <class Work>
    void for_each_chunk(const Work& work) {
        for (std::size_t begin = 0; begin < values.size(); begin += kChunkElements) {
            const std::size_t count = std::min(kChunkElements, values.size() - begin);
            work(begin / kChunkElements, std::span(values).subspan(begin, count),
                 std::span(sum).subspan(begin, count));
        }
    }

    std::vector<float> values, sum;
};

using Bodies = std::vector<std::vector<std::byte>>;

struct Task {
    CodecSpeed speed;
    std::function<void()> run;
    std::vector<double> seconds;
};

// One task for each direction of a codec. `bodies` hold what the first makes and the second reads.
void add_tasks(const Codec& codec, Memory& memory, std::vector<Task>& tasks) {
    const auto bodies = std::make_shared<Bodies>();  // shared by the two tasks
    memory.for_each_chunk([&](std::size_t, std::span<float> values, std::span<float>) {
        bodies->emplace_back(
            static_cast<std::size_t>(codec.body_bytes(static_cast<std::int64_t>(values.size()))));
    });
    const std::string set(name(codec.instruction_set()));
    const std::string codec_name(codec.name());
    tasks.push_back({{set, codec_name, "encode"},
                     [&codec, &memory, bodies] {
                         memory.for_each_chunk([&](std::size_t i, std::span<float> values, std::span<float>) {
                             ATOLL_CHECK(codec.encode(values, (*bodies)[i]), "values of N(0,1)");
                         });
                     },
                     {}});
    tasks.push_back(
        {{set, codec_name, "decode_add"},
         [&codec, &memory, bodies] {
             memory.for_each_chunk([&](std::size_t i, std::span<float>, std::span<float> sum) {
                 codec.decode_add({(*bodies)[i], static_cast<std::int64_t>(sum.size())}, 0, 0.5F, sum);
             });
         },
         {}});
}

}  // namespace

std::vector<CodecSpeed> measure_codecs(std::int64_t elements, int repetitions, const Clock& clock) {
    ATOLL_CHECK(elements > 0 && repetitions > 0, "{} elements, {} repetitions", elements, repetitions);
    Memory memory(elements);
    std::vector<Task> tasks;
    tasks.push_back({{"", "memcpy", "copy"},
                     [&memory] {
                         memory.for_each_chunk(
                             [](std::size_t, std::span<float> values, std::span<float> sum) {
                                 std::memcpy(sum.data(), values.data(), values.size_bytes());
                             });
                     },
                     {}});
    using kernels::InstructionSet;
    for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
        if (!is_supported(set)) continue;
        for (const Codec* codec : all_codecs(set)) add_tasks(*codec, memory, tasks);
    }
    for (Task& task : tasks) task.run();  // touches all memory, and makes the bodies
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        for (Task& task : tasks) {
            const TimePoint begin = clock.now();
            task.run();
            task.seconds.push_back(seconds(clock.now() - begin));
        }
    }
    std::vector<CodecSpeed> speeds;
    for (Task& task : tasks) {
        std::ranges::sort(task.seconds);
        task.speed.minimum_seconds = task.seconds.front();
        task.speed.median_seconds = task.seconds[task.seconds.size() / 2];
        speeds.push_back(std::move(task.speed));
    }
    return speeds;
}

}  // namespace atl
