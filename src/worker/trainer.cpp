#include "worker/trainer.h"

#include <algorithm>
#include <vector>

#include "island/schedule.h"
#include "outer/fragments.h"

namespace atl {
namespace {

CorpusOptions corpus_options(const RunConfig& config) {
    return {.vocab = shape_of(config.model).vocab,
            .end_of_text = static_cast<Token>(config.data.end_of_text)};
}

}  // namespace

Trainer::Trainer(const RunConfig& config, const FileSystem& files, const IslandOptions& island,
                 const IslandLinks& links, StrandPlanner& strands)
    : config_(config),
      corpus_(files, config.data.train, corpus_options(config)),
      batches_(corpus_, island.batch, static_cast<std::uint64_t>(config.run.seed)),
      strands_(strands),
      island_(std::make_unique<Island>(island, links)) {
    if (config.data.validation.empty()) return;
    validation_.emplace(files, config.data.validation, corpus_options(config));
    windows_.emplace(*validation_, EvaluationShape{.context = config.model.context,
                                                   .micro_batch = island.batch.micro_batch});
}

std::int64_t Trainer::evaluation_windows() const {
    if (!windows_) return 0;
    const std::int64_t wanted = config_.monitor.eval_windows;
    return wanted > 0 ? std::min(wanted, windows_->window_count()) : windows_->window_count();
}

void Trainer::dump_batches(FileSystem& files, const std::filesystem::path& path) {
    dump_.emplace(files, path, batches_.shape());
}

void Trainer::dump_block(std::int64_t step, std::int64_t block) {
    const BatchShape& shape = batches_.shape();
    MicroBatch batch(shape.micro_batch_tokens());
    for (std::int64_t i = 0; i < shape.micro_batches(); ++i) {
        batches_.read(block, i, batch.view());
        dump_->append(Step(step), block, i, batch.view());
    }
}

StepResult Trainer::train(std::int64_t step, std::int64_t block) {
    if (dump_) dump_block(step, block);
    for (std::int64_t i = 0; i < island_->local_micro_batches(); ++i)
        batches_.read(block, island_->micro_batch_of(i), island_->inputs(i));
    return island_->step(learning_rate(config_.optim, step, config_.train.steps));
}

EvaluationResult Trainer::evaluate(std::int64_t begin, std::int64_t end, const std::function<void()>& after_batch) {
    return windows_ ? island_->evaluate(*windows_, begin, end, after_batch) : EvaluationResult{};
}

Hash128 Trainer::set_moments(std::span<const float> values, std::int64_t optimizer_steps) {
    const auto next = [&](const TensorSpec&, BufferView whole) {
        const auto count = static_cast<std::size_t>(whole.count);
        if (whole.dtype == DType::f64)
            std::ranges::copy(values.first(count), whole.as<double>().begin());
        else
            std::ranges::copy(values.first(count), whole.as<float>().begin());
        values = values.subspan(count);
    };
    for (const TensorKind kind : island_->tensor_kinds())
        if (kind != TensorKind::parameter) island_->distribute(kind, next);
    island_->set_optimizer_steps(optimizer_steps);
    island_->share_optimizer_steps();
    return moments_hash();
}

std::int64_t Trainer::moment_elements() const {
    std::int64_t elements = 0;
    for (const TensorKind kind : island_->tensor_kinds())
        for (const TensorSpec& tensor : island_->tensors())
            if (kind != TensorKind::parameter && island_->has(kind, tensor))
                elements += element_count(tensor.shape);
    return elements;
}

Hash128 Trainer::moments_hash() {
    std::vector<float> values;
    for (const TensorKind kind : island_->tensor_kinds()) {
        if (kind == TensorKind::parameter) continue;
        island_->collect(kind, [&](const TensorSpec&, BufferView whole) {
            if (whole.dtype == DType::f64)
                for (const double value : whole.as<double>()) values.push_back(static_cast<float>(value));
            else
                values.insert(values.end(), whole.as<float>().begin(), whole.as<float>().end());
        });
    }
    return xxh3_128(std::as_bytes(std::span(values)));
}

Island::SelectTensor Trainer::selected(const RankOrder& order) {
    if (order.end <= 1) return {};
    return [fragment = order.begin, fragments = static_cast<int>(order.end)](const TensorSpec& tensor) {
        return fragment_of_layer(layer_of_tensor(tensor.name), fragments).value() == fragment;
    };
}

int Trainer::serve(RankTeam& team) {
    for (;;) {
        const RankOrder order = team.receive();
        switch (order.kind) {
            case RankOrder::Kind::wait:
                break;
            case RankOrder::Kind::train:
                train(order.step, order.block);
                break;
            case RankOrder::Kind::initialise:
                island_->initialise(static_cast<std::uint64_t>(config_.run.seed));
                break;
            case RankOrder::Kind::give_parameters:
                island_->copy_parameters({}, selected(order));
                break;
            case RankOrder::Kind::take_parameters:
                island_->set_parameters({}, selected(order));
                break;
            case RankOrder::Kind::give_state:
                for (const TensorKind kind : island_->tensor_kinds())
                    island_->collect(kind, [](const TensorSpec&, BufferView) {});
                break;
            case RankOrder::Kind::take_state:
                for (const TensorKind kind : island_->tensor_kinds()) island_->distribute(kind, {});
                island_->share_optimizer_steps();
                break;
            case RankOrder::Kind::take_moments:
                set_moments({}, 0);
                break;
            case RankOrder::Kind::evaluate:
                evaluate(order.begin, order.end);
                break;
            case RankOrder::Kind::plan_again:
                plan_again();
                break;
            case RankOrder::Kind::stop:
                return order.exit_code;
        }
    }
}

}  // namespace atl
