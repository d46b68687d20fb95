#include "simulator/published_steps.h"

#include "model/flops.h"

namespace atl {
namespace {

constexpr std::int32_t kMicroBatches = 16;
constexpr double kAccelerators = 64;

ModelShape llama(std::int64_t layers, std::int64_t hidden, std::int64_t ffn) {
    return {.kind = ModelKind::llama,
            .layers = layers,
            .hidden = hidden,
            .heads = hidden / 128,
            .kv_heads = hidden / 128,
            .head_width = 128,
            .ffn = ffn,
            .vocab = 32'000,
            .context = 65'536};
}

ModelShape gpt(std::int64_t layers, std::int64_t hidden) {
    return {.kind = ModelKind::gpt2,
            .layers = layers,
            .hidden = hidden,
            .heads = hidden / 128,
            .kv_heads = hidden / 128,
            .head_width = 128,
            .ffn = 4 * hidden,
            .vocab = 50'304,
            .context = 65'536,
            .tied = true};
}

// Two of sixteen experts of width 6400 for each token.
ModelShape phi() {
    auto shape = llama(32, 4096, 2 * 6400);
    shape.kv_heads = 8;
    return shape;
}

struct Layout {
    std::int32_t dp, tp, cp, pp;
    std::int64_t context;
};

IslandStep step_of(const ModelShape& shape, const Layout& layout) {
    return {.shape = shape,
            .tp = layout.tp,
            .pp = layout.pp,
            .cp = layout.cp,
            .dp = layout.dp,
            .context = layout.context,
            .micro_batches = kMicroBatches};
}

// Forward and twice as much backward, each token against all of its sequence's.
double megatron_flops_per_token(const IslandStep& step) {
    return 3 * forward_flops_per_token(step.shape, 2 * step.context - 1);
}

PublishedStep dense(const std::string& name, const std::string& cluster, const IslandStep& step,
                    double tflops, const PublishedSpeedups& speedups) {
    return {name, cluster, step, megatron_flops_per_token(step) * step.tokens_per_rank() / (tflops * 1e12),
            speedups};
}

PublishedStep with_experts(const std::string& name, const std::string& cluster, const IslandStep& step,
                           double tokens_per_second, const PublishedSpeedups& speedups) {
    return {name,     cluster,
            step,     kAccelerators * step.tokens_per_rank() / tokens_per_second,
            speedups, SerialUnknown::compute};
}

std::vector<PublishedStep> make_published_steps() {
    const auto llama_8b = llama(32, 4096, 14'336), llama_25b = llama(26, 8192, 28'672),
               llama_39b = llama(40, 8192, 28'672), llama_66b = llama(68, 8192, 28'672);
    const auto gpt_7b = gpt(32, 4096), gpt_18b = gpt(40, 6144), gpt_30b = gpt(48, 7168);
    constexpr std::int64_t kStandard = 8192, kLong = 16'384;
    auto experts = step_of(phi(), {16, 1, 1, 4, 4096});
    experts.ep = 8;
    experts.active_experts = 2;
    return {
        dense("Llama-8B", "a40", step_of(llama_8b, {16, 4, 1, 1, kStandard}), 64.4, {1.06, 1.06, 1.31}),
        dense("Llama-25B", "a40", step_of(llama_25b, {8, 8, 1, 1, kStandard}), 53.9, {1.09, 1.16, 1.40}),
        dense("Llama-39B", "a40", step_of(llama_39b, {4, 8, 1, 2, kStandard}), 68.1, {1.10, 1.02, 1.27}),
        dense("GPT-6.7B", "a40", step_of(gpt_7b, {16, 4, 1, 1, kStandard}), 61.6, {1.10, 1.13, 1.26}),
        dense("GPT-18B", "a40", step_of(gpt_18b, {8, 8, 1, 1, kStandard}), 40.6, {1.05, 1.12, 1.40}),
        dense("GPT-30B", "a40", step_of(gpt_30b, {4, 8, 1, 2, kStandard}), 57.8, {1.15, 1.13, 1.36}),
        dense("Llama-8B long", "a40", step_of(llama_8b, {8, 4, 2, 1, kLong}), 59.8, {1.06, 1.12, 1.30}),
        dense("Llama-25B long", "a40", step_of(llama_25b, {4, 8, 2, 1, kLong}), 38.4, {1.06, 1.07, 1.30}),
        dense("Llama-39B long", "a40", step_of(llama_39b, {2, 8, 2, 2, kLong}), 51.9, {1.07, 1.07, 1.39}),
        dense("GPT-6.7B long", "a40", step_of(gpt_7b, {8, 4, 2, 1, kLong}), 57.3, {1.09, 1.12, 1.31}),
        dense("GPT-18B long", "a40", step_of(gpt_18b, {4, 8, 2, 1, kLong}), 28.4, {1.05, 1.08, 1.22}),
        dense("GPT-30B long", "a40", step_of(gpt_30b, {2, 8, 2, 2, kLong}), 41.9, {1.09, 1.10, 1.23}),
        dense("Llama-66B 16k", "a800", step_of(llama_66b, {2, 8, 2, 2, 16'384}), 186.0, {{}, 1.02, 1.07}),
        dense("Llama-66B 32k", "a800", step_of(llama_66b, {1, 8, 4, 2, 32'768}), 160.9, {{}, 1.09, 1.24}),
        with_experts("Phi3.5-42B MoE", "a800", experts, 55'269, {{}, 1.04, 1.15}),
    };
}

}  // namespace

const std::vector<PublishedStep>& published_steps() {
    static const auto steps = make_published_steps();
    return steps;
}

}  // namespace atl
