#include "island/island.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/checkpoint.h"
#include "core/check.h"
#include "island/loaded_program.h"
#include "model/flops.h"
#include "model/training_program.h"

namespace atl {
namespace {

std::variant<AdamwAttributes, SgdAttributes> optimizer_attributes(const OptimConfig& optim) {
    if (optim.kind == OptimKind::sgd) return SgdAttributes{optim.weight_decay, optim.grad_clip};
    return AdamwAttributes{optim.beta1, optim.beta2, optim.epsilon, optim.weight_decay, optim.grad_clip};
}

ScratchRule scratch_rule(std::int32_t threads) {
    return [threads](const Program& program, const Op& op) { return op_scratch_bytes(program, op, threads); };
}

std::string value_name(TensorKind kind, const std::string& tensor) {
    switch (kind) {
        case TensorKind::parameter:
            return tensor;
        case TensorKind::first_moment:
            return "m/" + tensor;
        default:
            return "v/" + tensor;
    }
}

void copy_as_float(BufferView source, std::span<float> destination) {
    if (source.dtype == DType::f64) {
        std::ranges::transform(source.as<double>(), destination.begin(),
                               [](double x) { return static_cast<float>(x); });
    } else {
        std::ranges::copy(source.as<float>(), destination.begin());
    }
}

void copy_from_float(std::span<const float> source, BufferView destination) {
    if (destination.dtype == DType::f64) {
        std::ranges::copy(source, destination.as<double>().begin());
    } else {
        std::ranges::copy(source, destination.as<float>().begin());
    }
}

void fill_with_zeros(BufferView view) {
    std::fill_n(static_cast<std::byte*>(view.data), view.bytes(), std::byte{0});
}

std::int64_t count_targets(std::span<const std::int32_t> targets) {
    return std::ranges::count_if(targets, [](std::int32_t target) { return target >= 0; });
}

}  // namespace

struct Island::State {
    State(const IslandOptions& options, IslandCollective* data_parallel)
        : options(options), data_parallel(data_parallel), tensors(model_tensors(options.model)) {
        ATOLL_CHECK_EQ(options.batch.micro_batches() % ranks(), 0, "micro-batches of a step over {} ranks",
                       ranks());
        for (const TensorSpec& tensor : tensors) sorted.push_back(&tensor);
        std::ranges::sort(sorted, {}, [](const TensorSpec* tensor) { return tensor->name; });
        if (options.purpose == IslandPurpose::training) {
            load(training, training_program(), nullptr);
        } else {
            load_evaluation();
        }
    }

    std::int32_t rank() const { return data_parallel == nullptr ? 0 : data_parallel->rank().value(); }
    std::int32_t ranks() const { return data_parallel == nullptr ? 1 : data_parallel->size(); }
    std::int64_t local_micro_batches() const { return options.batch.micro_batches() / ranks(); }

    Program training_program() const {
        return make_training_program(options.model,
                                     {.sequences = options.batch.micro_batch,
                                      .context = options.batch.context,
                                      .micro_batches = static_cast<std::int32_t>(local_micro_batches()),
                                      .dtype = options.dtype,
                                      .rank = Rank(rank()),
                                      .parallel = {.dp = ranks()},
                                      .optimizer = optimizer_attributes(options.optim),
                                      .scratch_bytes = scratch_rule(options.threads)});
    }

    void load(std::unique_ptr<LoadedProgram>& loaded, Program program, const ProgramMemory* share_with) {
        ExecutorOptions executor{.threads = options.threads,
                                 .collective_timeout = options.collective_timeout};
        if (data_parallel != nullptr) executor.groups["dp"] = data_parallel;
        loaded = std::make_unique<LoadedProgram>(
            std::move(program), options.model,
            ProgramMemoryOptions{.measure = options.measure_memory, .share_with = share_with}, executor);
    }

    void load_evaluation() {
        if (evaluation) return;
        load(evaluation,
             make_evaluation_program(options.model, {.sequences = options.batch.micro_batch,
                                                     .context = options.batch.context,
                                                     .dtype = options.dtype,
                                                     .rank = Rank(rank()),
                                                     .parallel = {.dp = ranks()},
                                                     .scratch_bytes = scratch_rule(options.threads)}),
             training ? &training->memory : nullptr);
    }

    LoadedProgram& holder() { return training ? *training : *evaluation; }  // of the parameters
    BufferView tensor(TensorKind kind, const std::string& name) {
        return holder().memory.view(value_name(kind, name));
    }

    // Sums a few numbers over the ranks, exactly as long as they are counts.
    void sum_over_ranks(std::span<double> values) {
        if (data_parallel != nullptr) data_parallel->all_reduce(view_of(values), options.collective_timeout);
    }

    IslandOptions options;
    IslandCollective* data_parallel;
    std::vector<TensorSpec> tensors;
    std::vector<const TensorSpec*> sorted;  // by name
    std::unique_ptr<LoadedProgram> training;
    std::unique_ptr<LoadedProgram> evaluation;  // made when it is first needed
    std::int64_t optimizer_steps = 0;
    std::int64_t skipped_steps = 0;
};

Island::Island(const IslandOptions& options, IslandCollective* data_parallel)
    : state_(std::make_unique<State>(options, data_parallel)) {}

Island::~Island() = default;

const IslandOptions& Island::options() const {
    return state_->options;
}

void Island::initialise(std::uint64_t seed) {
    State& s = *state_;
    for (const TensorSpec& spec : s.tensors) {
        const BufferView view = tensor(TensorKind::parameter, spec.name);
        const Box whole = Box::whole(spec.shape);
        if (view.dtype == DType::f64) {
            fill_initial(s.options.model, spec, seed, whole, view.as<double>());
        } else {
            fill_initial(s.options.model, spec, seed, whole, view.as<float>());
        }
        if (!has_moments()) continue;
        fill_with_zeros(tensor(TensorKind::first_moment, spec.name));
        fill_with_zeros(tensor(TensorKind::second_moment, spec.name));
    }
    s.optimizer_steps = 0;
}

const std::vector<TensorSpec>& Island::tensors() const {
    return state_->tensors;
}

BufferView Island::tensor(TensorKind kind, const std::string& name) {
    return state_->tensor(kind, name);
}

bool Island::has_moments() const {
    return state_->training != nullptr && state_->options.optim.kind == OptimKind::adamw;
}

std::int64_t Island::parameter_count() const {
    return atl::parameter_count(state_->options.model);
}

void Island::copy_parameters(std::span<float> destination) const {
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(destination.size()), parameter_count());
    for (const TensorSpec* spec : state_->sorted) {
        const BufferView view = state_->tensor(TensorKind::parameter, spec->name);
        copy_as_float(view, destination.first(static_cast<std::size_t>(view.count)));
        destination = destination.subspan(static_cast<std::size_t>(view.count));
    }
}

void Island::set_parameters(std::span<const float> source) {
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(source.size()), parameter_count());
    for (const TensorSpec* spec : state_->sorted) {
        const BufferView view = state_->tensor(TensorKind::parameter, spec->name);
        copy_from_float(source.first(static_cast<std::size_t>(view.count)), view);
        source = source.subspan(static_cast<std::size_t>(view.count));
    }
}

std::string Island::parameters_blake2b() const {
    std::vector<float> all(static_cast<std::size_t>(parameter_count()));
    copy_parameters(all);
    std::map<std::string, std::span<const float>> by_name;
    std::span<const float> rest = all;
    for (const TensorSpec* spec : state_->sorted) {
        const auto count = static_cast<std::size_t>(element_count(spec->shape));
        by_name[spec->name] = rest.first(count);
        rest = rest.subspan(count);
    }
    return atl::parameters_blake2b(by_name);
}

std::int64_t Island::optimizer_steps() const {
    return state_->optimizer_steps;
}

void Island::set_optimizer_steps(std::int64_t steps) {
    state_->optimizer_steps = steps;
}

std::int64_t Island::skipped_steps() const {
    return state_->skipped_steps;
}

std::int64_t Island::local_micro_batches() const {
    return state_->local_micro_batches();
}

std::int64_t Island::micro_batch_of(std::int64_t local_index) const {
    return local_index * state_->ranks() + state_->rank();
}

MicroBatchView Island::inputs(std::int64_t local_index) {
    ATOLL_CHECK(state_->training != nullptr, "an island for evaluation does not train");
    return state_->training->inputs(local_index);
}

StepResult Island::step(double learning_rate) {
    State& s = *state_;
    ATOLL_CHECK(s.training != nullptr, "an island for evaluation does not train");
    const SystemClock clock;
    const TimePoint begin = clock.now();
    double tokens = 0;
    for (std::int64_t k = 0; k < local_micro_batches(); ++k) {
        tokens += static_cast<double>(count_targets(inputs(k).targets));
    }
    s.sum_over_ranks({&tokens, 1});
    const double scalars[4] = {learning_rate, static_cast<double>(s.optimizer_steps + 1), tokens, 0};
    std::ranges::copy(scalars, s.training->memory.view("scalars").as<double>().begin());

    s.training->executor.run();

    StepResult result;
    for (std::int64_t k = 0; k < local_micro_batches(); ++k) result.loss_sum += s.training->loss(k);
    s.sum_over_ranks({&result.loss_sum, 1});
    const double norm2 = s.training->memory.view("norm2").as<double>()[0];
    result.tokens = static_cast<std::int64_t>(tokens);
    result.gradient_norm = tokens > 0 ? std::sqrt(norm2) / tokens : 0;
    result.applied = std::isfinite(norm2) && tokens > 0;
    (result.applied ? s.optimizer_steps : s.skipped_steps) += 1;
    result.seconds = seconds(clock.now() - begin);
    return result;
}

EvaluationResult Island::evaluate(const EvaluationWindows& windows, std::int64_t begin, std::int64_t end) {
    State& s = *state_;
    s.load_evaluation();
    const std::int64_t at_once = s.options.batch.micro_batch;
    double sums[2] = {0, 0};  // loss, tokens
    for (std::int64_t first = begin + s.rank() * at_once; first < end; first += s.ranks() * at_once) {
        sums[1] += static_cast<double>(windows.read(first, end, s.evaluation->inputs(0)));
        s.evaluation->executor.run();
        sums[0] += s.evaluation->loss(0);
    }
    s.sum_over_ranks(sums);
    return {sums[0], static_cast<std::int64_t>(sums[1])};
}

StepTimes Island::times() const {
    return state_->holder().executor.times();
}

void Island::reset_times() {
    state_->holder().executor.reset_times();
}

double Island::flops_per_step() const {
    const IslandOptions& o = state_->options;
    const auto tokens = static_cast<double>(local_micro_batches() * o.batch.micro_batch_tokens());
    return tokens * (forward_flops_per_token(o.model, o.batch.context) +
                     backward_flops_per_token(o.model, o.batch.context));
}

std::int64_t Island::predicted_bytes() const {
    std::int64_t bytes = state_->holder().placement.peak_bytes();
    if (state_->training && state_->evaluation) bytes += state_->evaluation->memory.placed_bytes();
    return bytes;
}

std::int64_t Island::measured_bytes() const {
    std::int64_t bytes = state_->holder().measured_bytes();
    if (state_->training && state_->evaluation) bytes += state_->evaluation->measured_bytes();
    return bytes;
}

StepAllocations Island::allocations() const {
    return state_->holder().executor.allocations();
}

}  // namespace atl
