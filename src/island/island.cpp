#include "island/island.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "core/check.h"
#include "core/hash.h"
#include "island/island_programs.h"
#include "island/loaded_program.h"
#include "island/whole_tensors.h"
#include "model/flops.h"
#include "model/model_layout.h"

namespace atl {
namespace {

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

// Which of the island's tensors a value with a box is part of; gradients are nobody's.
std::optional<TensorKind> kind_of(const Value& value) {
    if (value.role == Role::parameter) return TensorKind::parameter;
    if (value.role != Role::state) return std::nullopt;
    if (value.name.starts_with("m/")) return TensorKind::first_moment;
    if (value.name.starts_with("v/")) return TensorKind::second_moment;
    return std::nullopt;
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
    State(const IslandOptions& island_options, const IslandLinks& island_links)
        : options(island_options),
          links(island_links),
          place(place_of(options.parallel, links.rank)),
          here(rank_shape(options.model, options.parallel, links.rank)),
          tensors(model_tensors(options.model)),
          parameters(parameter_layout(options.model, options.parallel), links.rank, links.messages,
                     options.collective_timeout),
          moments(moment_layout(options.model, options.parallel), links.rank, links.messages,
                  options.collective_timeout) {
        ATOLL_CHECK_EQ(options.batch.micro_batches() % options.parallel.dp, 0,
                       "micro-batches of a step over {} data-parallel ranks", options.parallel.dp);
        ATOLL_CHECK(links.world != nullptr || options.parallel.ranks() == 1, "nothing joins {} ranks",
                    options.parallel.ranks());
        for (const TensorSpec& tensor : tensors)
            offsets[tensor.name] = static_cast<std::size_t>(element_count(tensor.shape));
        std::size_t offset = 0;
        for (auto& [name, entry] : offsets) offset += std::exchange(entry, offset);
        if (options.purpose == IslandPurpose::training) {
            training = load(options, training_program(options, links.rank), {});
        } else {
            load_evaluation();
        }
        find_pieces();
    }

    std::int64_t local_micro_batches() const { return options.batch.micro_batches() / options.parallel.dp; }
    // One rank of each replica speaks for it: the first of those that compute the loss.
    bool speaks_for_replica() const { return place.tp == 0 && here.has_head; }

    std::unique_ptr<LoadedProgram> load(const IslandOptions& wanted, Program program,
                                        ProgramMemoryOptions memory_options) const {
        memory_options.measure = wanted.measure_memory;
        return std::make_unique<LoadedProgram>(
            std::move(program), wanted.model, memory_options,
            ExecutorOptions{.threads = wanted.threads,
                            .collective_timeout = wanted.collective_timeout,
                            .groups = links.groups,
                            .point_to_point = links.step_messages,
                            .mode = wanted.mode});
    }

    void load_evaluation() {
        if (evaluation) return;
        evaluation = load(options, evaluation_program(options, links.rank),
                          {.share_with = training ? &training->memory : nullptr});
    }

    LoadedProgram& holder() { return training ? *training : *evaluation; }  // of the parameters
    WholeTensors& layout_of(TensorKind kind) { return kind == TensorKind::parameter ? parameters : moments; }

    // This rank's parts of a tensor; none on ranks of other stages.
    const std::vector<BoxView>& pieces(TensorKind kind, const std::string& name) { return held[kind][name]; }
    void find_pieces() {
        const LoadedProgram& loaded = holder();
        for (const Value& value : loaded.program.values) {
            if (!value.box) continue;
            const auto kind = kind_of(value);
            if (kind)
                held[*kind][value.box->tensor].push_back({value.box->box, loaded.memory.view(value.id)});
        }
    }
    bool holds_whole(TensorKind kind, const TensorSpec& spec) {
        const auto& parts = pieces(kind, spec.name);
        return parts.size() == 1 && parts.front().box == Box::whole(spec.shape);
    }

    // Where the gateway has a tensor whole: in its own memory if it holds all of it, else in a buffer.
    BufferView whole(TensorKind kind, const TensorSpec& spec) {
        if (holds_whole(kind, spec)) return pieces(kind, spec.name).front().values;
        if (links.rank != Rank(0)) return {.dtype = options.dtype};
        const std::int64_t count = element_count(spec.shape);
        whole_buffer.resize(
            std::max(whole_buffer.size(), static_cast<std::size_t>(count)));  // room for either type
        return {whole_buffer.data(), count, options.dtype, Device::cpu};
    }

    // A tensor's part of all parameters, which stand sorted by name.
    template <class T>
    std::span<T> part_of(const TensorSpec& spec, std::span<T> all) const {
        ATOLL_CHECK_EQ(static_cast<std::int64_t>(all.size()), atl::parameter_count(options.model));
        return all.subspan(offsets.at(spec.name), static_cast<std::size_t>(element_count(spec.shape)));
    }

    // Sums a few numbers over the ranks, exactly as long as they are counts.
    void sum_over_ranks(std::span<double> values) {
        if (links.world != nullptr) links.world->all_reduce(view_of(values), options.collective_timeout);
    }

    IslandOptions options;
    IslandLinks links;
    RankPlace place;
    RankShape here;
    std::vector<TensorSpec> tensors;
    std::map<std::string, std::size_t> offsets;  // among all parameters, sorted by name
    WholeTensors parameters;
    WholeTensors moments;
    std::map<TensorKind, std::map<std::string, std::vector<BoxView>>> held;
    std::vector<double> whole_buffer;
    std::unique_ptr<LoadedProgram> training;
    std::unique_ptr<LoadedProgram> evaluation;  // made when it is first needed
    std::int64_t optimizer_steps = 0;
    std::int64_t skipped_steps = 0;
};

Island::Island(const IslandOptions& options, const IslandLinks& links)
    : state_(std::make_unique<State>(options, links)) {}

Island::~Island() = default;

const IslandOptions& Island::options() const {
    return state_->options;
}

void Island::initialise(std::uint64_t seed) {
    State& s = *state_;
    for (const TensorSpec& spec : s.tensors) {
        for (const auto& [box, view] : s.pieces(TensorKind::parameter, spec.name)) {
            if (view.dtype == DType::f64) {
                fill_initial(s.options.model, spec, seed, box, view.as<double>());
            } else {
                fill_initial(s.options.model, spec, seed, box, view.as<float>());
            }
        }
        if (!has_moments()) continue;
        for (const TensorKind kind : {TensorKind::first_moment, TensorKind::second_moment})
            for (const auto& piece : s.pieces(kind, spec.name)) fill_with_zeros(piece.values);
    }
    s.optimizer_steps = 0;
}

const std::vector<TensorSpec>& Island::tensors() const {
    return state_->tensors;
}

BufferView Island::tensor(TensorKind kind, const std::string& name) {
    return state_->holder().memory.view(value_name(kind, name));
}

bool Island::has_moments() const {
    return state_->training != nullptr && state_->options.optim.kind != OptimKind::sgd;
}

bool Island::has(TensorKind kind, const TensorSpec& tensor) const {
    if (kind == TensorKind::parameter) return true;
    const bool one_moment = state_->options.optim.kind == OptimKind::muon && tensor.hidden;
    return has_moments() && !(one_moment && kind == TensorKind::second_moment);
}

std::vector<TensorKind> Island::tensor_kinds() const {
    if (!has_moments()) return {TensorKind::parameter};
    return {TensorKind::parameter, TensorKind::first_moment, TensorKind::second_moment};
}

void Island::collect(TensorKind kind, const VisitTensor& visit, const SelectTensor& select) {
    for (const TensorSpec& spec : state_->tensors) {
        if (!has(kind, spec) || (select && !select(spec))) continue;
        const BufferView whole = state_->whole(kind, spec);
        state_->layout_of(kind).collect(spec.name, state_->pieces(kind, spec.name), whole);
        if (whole.count > 0) visit(spec, whole);
    }
}

void Island::distribute(TensorKind kind, const VisitTensor& fill, const SelectTensor& select) {
    for (const TensorSpec& spec : state_->tensors) {
        if (!has(kind, spec) || (select && !select(spec))) continue;
        const BufferView whole = state_->whole(kind, spec);
        if (state_->links.rank == Rank(0)) fill(spec, whole);
        state_->layout_of(kind).distribute(spec.name, whole, state_->pieces(kind, spec.name));
    }
}

std::int64_t Island::parameter_count() const {
    return atl::parameter_count(state_->options.model);
}

void Island::copy_parameters(std::span<float> destination, const SelectTensor& select) {
    const auto copy = [&](const TensorSpec& spec, BufferView whole) {
        if (!destination.empty()) copy_as_float(whole, state_->part_of(spec, destination));
    };
    collect(TensorKind::parameter, copy, select);
}

void Island::set_parameters(std::span<const float> source, const SelectTensor& select) {
    const auto copy = [&](const TensorSpec& spec, BufferView whole) {
        copy_from_float(state_->part_of(spec, source), whole);
    };
    distribute(TensorKind::parameter, copy, select);
}

std::string Island::parameters_blake2b() {
    bool is_whole = true;
    for (const TensorSpec& spec : state_->tensors)
        is_whole =
            is_whole && (state_->links.rank == Rank(0) || state_->holds_whole(TensorKind::parameter, spec));
    std::vector<float> all(is_whole ? static_cast<std::size_t>(parameter_count()) : 0);
    copy_parameters(all);
    if (!is_whole) return "";
    std::map<std::string, std::span<const float>> by_name;
    for (const TensorSpec& spec : state_->tensors)
        by_name[spec.name] = state_->part_of(spec, std::span<const float>(all));
    return atl::parameters_blake2b(by_name);
}

std::int64_t Island::optimizer_steps() const {
    return state_->optimizer_steps;
}

void Island::set_optimizer_steps(std::int64_t steps) {
    state_->optimizer_steps = steps;
}

void Island::share_optimizer_steps() {
    double steps = static_cast<double>(state_->optimizer_steps);
    if (state_->links.world == nullptr) return;
    state_->links.world->broadcast(view_of(std::span(&steps, 1)), Rank(0),
                                   state_->options.collective_timeout);
    state_->optimizer_steps = static_cast<std::int64_t>(steps);
}

std::int64_t Island::skipped_steps() const {
    return state_->skipped_steps;
}

std::int64_t Island::local_micro_batches() const {
    return state_->local_micro_batches();
}

std::int64_t Island::micro_batch_of(std::int64_t local_index) const {
    return local_index * state_->options.parallel.dp + state_->place.dp;
}

MicroBatchView Island::inputs(std::int64_t local_index) {
    ATOLL_CHECK(state_->training != nullptr, "an island for evaluation does not train");
    return state_->training->inputs(local_index);
}

void Island::set_plan(std::shared_ptr<const StrandPlan> plan) {
    State& s = *state_;
    ATOLL_CHECK(s.training != nullptr, "an island for evaluation has no strands");
    IslandOptions planned = s.options;
    planned.plan = std::move(plan);
    Program program = training_program(planned, s.links.rank);
    s.training = s.load(planned, std::move(program), {.share_with = &s.training->memory, .takes_over = true});
    s.evaluation.reset();  // it shared the old arenas
    s.options = std::move(planned);
}

StepResult Island::step(double learning_rate) {
    State& s = *state_;
    ATOLL_CHECK(s.training != nullptr, "an island for evaluation does not train");
    const SystemClock clock;
    const TimePoint begin = clock.now();
    double tokens = 0;
    if (s.speaks_for_replica())
        for (std::int64_t k = 0; k < local_micro_batches(); ++k)
            tokens += static_cast<double>(count_targets(inputs(k).targets));
    s.sum_over_ranks({&tokens, 1});
    const double scalars[4] = {learning_rate, static_cast<double>(s.optimizer_steps + 1), tokens, 0};
    std::ranges::copy(scalars, s.training->memory.view("scalars").as<double>().begin());

    s.training->executor.run();

    StepResult result;
    if (s.speaks_for_replica())
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

EvaluationResult Island::evaluate(const EvaluationWindows& windows, std::int64_t begin, std::int64_t end,
                                  const std::function<void()>& after_batch) {
    State& s = *state_;
    s.load_evaluation();
    const std::int64_t at_once = s.options.batch.micro_batch;
    const std::int64_t replicas = s.options.parallel.dp;
    double sums[2] = {0, 0};  // loss, tokens
    for (std::int64_t first = begin + s.place.dp * at_once; first < end; first += replicas * at_once) {
        const std::int64_t targets = windows.read(first, end, s.evaluation->inputs(0));
        s.evaluation->executor.run();
        if (after_batch) after_batch();
        if (!s.speaks_for_replica()) continue;
        sums[0] += s.evaluation->loss(0);
        sums[1] += static_cast<double>(targets);
    }
    s.sum_over_ranks(sums);
    return {sums[0], static_cast<std::int64_t>(sums[1])};
}

std::string Island::gradients_blake2b() const {
    const LoadedProgram& loaded = state_->holder();
    std::map<std::string, BufferView> by_name;  // programs may list them in other orders
    for (const Value& value : loaded.program.values)
        if (value.role == Role::gradient && !value.view_of)
            by_name[value.name] = loaded.memory.view(value.id);
    Blake2b hash;
    for (const auto& [name, view] : by_name) {
        hash.update(std::as_bytes(std::span(name)));
        hash.update({static_cast<const std::byte*>(view.data), static_cast<std::size_t>(view.bytes())});
    }
    return hash.hex();
}

StepTimes Island::times() const {
    return state_->holder().executor.times();
}

const std::vector<OpTime>& Island::op_times() const {
    return state_->holder().executor.op_times();
}

TimePoint Island::step_begin() const {
    return state_->holder().executor.step_begin();
}

void Island::reset_times() {
    state_->holder().executor.reset_times();
}

double Island::flops_per_step() const {
    const IslandOptions& o = state_->options;
    const auto tokens = static_cast<double>(o.batch.block_tokens()) / o.parallel.ranks();
    return tokens * (forward_flops_per_token(o.model, o.batch.context) +
                     backward_flops_per_token(o.model, o.batch.context));
}

std::int64_t Island::predicted_bytes() const {
    std::int64_t bytes = state_->holder().memory.placed_bytes();
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
