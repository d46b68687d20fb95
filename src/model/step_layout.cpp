#include "model/step_layout.h"

#include <fmt/format.h>

#include <charconv>

#include "core/check.h"

namespace atl {
namespace {

// The configuration has been checked: these are numbers with commas between.
std::vector<std::int64_t> stage_layers_of(const std::string& text) {
    std::vector<std::int64_t> layers;
    const char* end = text.data() + text.size();
    for (const char* next = text.data(); next < end; ++next)
        next = std::from_chars(next, end, layers.emplace_back()).ptr;
    return layers;
}

}  // namespace

ScheduleOptions schedule_options_of(const IslandConfig& island, std::int64_t micro_batches) {
    const auto kind = schedule_kind_from_name(island.schedule);
    ATOLL_CHECK(kind, "schedule {}", island.schedule);
    return {.kind = *kind,
            .ranks = static_cast<std::int32_t>(island.pp),
            .micro_batches = static_cast<std::int32_t>(micro_batches),
            .chunks = static_cast<std::int32_t>(island.chunks),
            .memory_micro_batches = static_cast<std::int32_t>(island.strand_micro_batches)};
}

ParallelShape parallel_shape_of(const IslandConfig& island) {
    const PipelineShape pipeline = pipeline_of(schedule_options_of(island, 1));
    return {.tp = static_cast<std::int32_t>(island.tp),
            .pp = static_cast<std::int32_t>(island.pp),
            .dp = static_cast<std::int32_t>(island.dp),
            .chunks = pipeline.chunks,
            .placement = pipeline.placement,
            .stage_layers = stage_layers_of(island.stage_layers),
            .zero = island.zero};
}

bool may_halve(const ModelShape& model, const ParallelShape& parallel, std::int64_t micro_batches,
               std::int64_t sequences, std::int64_t context) {
    return micro_batches == 1 && parallel.pp == 1 && sequences % 2 == 0 &&
           problems(model, parallel, sequences / 2 * context).empty();
}

ProfileFingerprint fingerprint_of(const ModelShape& model, const ParallelShape& parallel,
                                  std::int64_t micro_batch_tokens, std::int32_t threads, DType dtype) {
    return {.model = fmt::format("{} layers {} hidden {} heads {}/{} of {} ffn {} vocab {} context {}{}",
                                 model.kind == ModelKind::llama ? "llama" : "gpt2", model.layers,
                                 model.hidden, model.heads, model.kv_heads, model.head_width, model.ffn,
                                 model.vocab, model.context, model.tied ? " tied" : ""),
            .tp = parallel.tp,
            .pp = parallel.pp,
            .cp = 1,
            .dtype = dtype,
            .micro_batch_tokens = micro_batch_tokens,
            .threads = threads};
}

}  // namespace atl
