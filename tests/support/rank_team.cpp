#include "support/rank_team.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/scratch.h"
#include "layout/box_copy.h"
#include "program/checker.h"
#include "program/dependencies.h"
#include "support/island_testing.h"
#include "support/threads.h"

namespace atl::test {
namespace {

std::int64_t scratch_of_one_thread(const Program& program, const Op& op) {
    return op_scratch_bytes(program, op, 1);
}

template <class Visit>
void visit_elements(BufferView view, Visit visit) {
    if (view.dtype == DType::f64)
        visit(view.as<double>());
    else
        visit(view.as<float>());
}

void write_box(BufferView view, const Box& box, const LogicalTensor& tensor) {
    visit_elements(view, [&](auto span) { copy_box(std::span(tensor.values), tensor.box, span, box, box); });
}

void read_box(BufferView view, const Box& box, LogicalTensor& tensor) {
    const auto into = std::span(tensor.values);
    visit_elements(view, [&]<class T>(std::span<T> span) {
        copy_box(std::span<const T>(span), box, into, tensor.box, box);
    });
}

}  // namespace

LogicalTensors random_parameters(const ModelShape& shape) {
    LogicalTensors tensors;
    for (const auto& spec : model_tensors(shape)) {
        const RandomStream random(5, spec.name);
        tensors[spec.name].box = Box::whole(spec.shape);
        auto& values = tensors[spec.name].values;
        for (std::int64_t i = 0; i < element_count(spec.shape); ++i)
            values.push_back((spec.initial == InitialValues::ones ? 1.0 : 0.0) +
                             static_cast<float>(0.2 * random.normal(static_cast<std::uint64_t>(i))));
    }
    return tensors;
}

double largest_relative_difference(const LogicalTensors& actual, const LogicalTensors& expected) {
    ATOLL_CHECK_EQ(actual.size(), expected.size());
    double largest = 0;
    for (const auto& [name, tensor] : expected) {
        const auto& values = tensor.values;
        const auto& others = actual.at(name).values;
        ATOLL_CHECK_EQ(others.size(), values.size(), "{}", name);
        double difference = 0, magnitude = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            difference = std::max(difference, std::abs(others[i] - values[i]));
            magnitude = std::max(magnitude, std::abs(values[i]));
        }
        ATOLL_CHECK(std::isfinite(difference) && magnitude > 0, "{}", name);
        largest = std::max(largest, difference / magnitude);
    }
    return largest;
}

RankTeam::RankTeam(const RankTeamOptions& options) : options_(options) {
    auto& training = options_.training;
    ATOLL_CHECK_EQ(options_.step_micro_batches % training.parallel.dp, 0);
    training.micro_batches = options_.step_micro_batches / training.parallel.dp;
    training.scratch_bytes = scratch_of_one_thread;
    messages_ = make_local_point_to_point(ranks(), "messages");
    std::vector<Program> programs;
    for (std::int32_t rank = 0; rank < ranks(); ++rank) {
        training.rank = Rank(rank);
        programs.push_back(options_.schedule(emit_training_step(options_.shape, training)));
    }
    const auto problems = check_programs(programs);
    ATOLL_CHECK(problems.empty(), "{}", problems.front());
    load(programs_, std::move(programs), false);
}

void RankTeam::load(Loaded& loaded, std::vector<Program> programs, bool shares_memory) {
    for (auto& program : programs) {
        const auto rank = static_cast<std::size_t>(program.rank.value());
        auto executor = options_.executor;
        executor.point_to_point = messages_[rank].get();
        for (const auto& [name, members] : program.groups) {
            auto& group = collectives_[{name, members}];
            if (group.empty())
                group = make_local_collectives(static_cast<std::int32_t>(members.size()), name);
            const auto place = std::ranges::find(members, program.rank) - members.begin();
            executor.groups[name] = group[static_cast<std::size_t>(place)].get();
        }
        loaded.push_back(std::make_unique<LoadedProgram>(
            std::move(program), options_.shape,
            ProgramMemoryOptions{.measure = true,
                                 .share_with = shares_memory ? &programs_[rank]->memory : nullptr},
            executor));
    }
}

void RankTeam::set_parameters(const LogicalTensors& tensors) {
    for (const auto& loaded : programs_)
        for (const auto& value : loaded->program.values) {
            const auto view = loaded->memory.view(value.id);
            if (value.role == Role::state && value.name != "rope_table")
                visit_elements(view, [](auto span) { std::ranges::fill(span, 0); });
            if (value.role == Role::parameter && value.box)
                write_box(view, value.box->box, tensors.at(value.box->tensor));
        }
}

void RankTeam::run(Loaded& loaded, std::int64_t number) {
    const auto& training = options_.training;
    for (std::int32_t rank = 0; rank < ranks(); ++rank) {
        const auto place = place_of(training.parallel, Rank(rank));
        auto& program = *loaded[static_cast<std::size_t>(rank)];
        for (std::int32_t k = 0; k < training.micro_batches; ++k)
            fill_random_batch(program.inputs(k), options_.shape.context, options_.shape.vocab, number,
                              (k * training.parallel.dp + place.dp) * training.sequences);
    }
    run_ranks(ranks(), [&](std::int32_t rank) {
        omp_set_num_threads(1);
        loaded[static_cast<std::size_t>(rank)]->executor.run();
    });
}

void RankTeam::step(std::int64_t number, double learning_rate) {
    const double tokens = 50;  // any number will do; the norm and the clip depend on it
    const double scalars[4] = {learning_rate, static_cast<double>(number + 1), tokens, 0};
    for (const auto& loaded : programs_)
        std::ranges::copy(scalars, loaded->memory.view("scalars").as<double>().begin());
    run(programs_, number);
}

double RankTeam::evaluate(std::int64_t number) {
    if (evaluation_.empty()) {
        const auto& training = options_.training;
        std::vector<Program> programs;
        for (std::int32_t rank = 0; rank < ranks(); ++rank)
            programs.push_back(
                make_evaluation_program(options_.shape, {.sequences = training.sequences,
                                                         .context = training.context,
                                                         .micro_batches = training.micro_batches,
                                                         .dtype = training.dtype,
                                                         .rank = Rank(rank),
                                                         .parallel = training.parallel,
                                                         .scratch_bytes = scratch_of_one_thread}));
        load(evaluation_, std::move(programs), true);
    }
    run(evaluation_, number);
    return loss_of(evaluation_);
}

double RankTeam::loss() const {
    return loss_of(programs_);
}

double RankTeam::loss_of(const Loaded& loaded) const {
    const auto& parallel = options_.training.parallel;
    const auto head = parallel.pipeline().rank_of(parallel.stages() - 1);
    double sum = 0;
    for (std::int32_t dp = 0; dp < parallel.dp; ++dp) {
        const auto loss_on = [&](std::int32_t tp) {
            double loss = 0;
            for (std::int32_t k = 0; k < options_.training.micro_batches; ++k)
                loss += loaded[static_cast<std::size_t>(rank_at(parallel, {tp, head, dp}).value())]->loss(k);
            return loss;
        };
        sum += loss_on(0);
        for (std::int32_t tp = 1; tp < parallel.tp; ++tp) ATOLL_CHECK_EQ(loss_on(tp), loss_on(0));
    }
    return sum;
}

double RankTeam::norm2() const {
    const auto norm2_on = [](const LoadedProgram& loaded) {
        return loaded.memory.view("norm2").as<double>()[0];
    };
    for (const auto& loaded : programs_) ATOLL_CHECK_EQ(norm2_on(*loaded), norm2_on(*programs_.front()));
    return norm2_on(*programs_.front());
}

std::int64_t RankTeam::untouched_bytes(std::int32_t rank) const {
    const auto& loaded = *programs_[static_cast<std::size_t>(rank)];
    const auto bytes = loaded.placement.peak_bytes() - loaded.measured_bytes();
    const auto end_of_scratch = 2 * kernels::kQueryBlock * size_bytes(options_.training.dtype);
    return bytes > 0 && bytes <= end_of_scratch ? 0 : bytes;
}

template <class IsWanted>
LogicalTensors RankTeam::assemble(IsWanted is_wanted) const {
    LogicalTensors tensors;
    for (const auto& spec : model_tensors(options_.shape)) {
        const auto box = Box::whole(spec.shape);
        tensors[spec.name] = {box, std::vector<double>(static_cast<std::size_t>(box.elements()), NAN)};
    }
    for (const auto& loaded : programs_)
        for (const auto& value : loaded->program.values) {
            if (!value.box || !is_wanted(loaded->program, value)) continue;
            auto& tensor = tensors.at(value.box->tensor);
            const auto before = tensor.values;
            read_box(loaded->memory.view(value.id), value.box->box, tensor);
            for (std::size_t i = 0; i < before.size(); ++i)
                ATOLL_CHECK(std::isnan(before[i]) || before[i] == tensor.values[i],
                            "rank {}: another rank holds another {}", loaded->program.rank, value.name);
        }
    return tensors;
}

LogicalTensors RankTeam::parameters() const {
    return assemble([](const Program&, const Value& value) { return value.role == Role::parameter; });
}

LogicalTensors RankTeam::moments() const {
    return assemble([](const Program&, const Value& value) { return value.name.starts_with("m/"); });
}

// What a reduce-scatter reads holds this rank's own sum still.
LogicalTensors RankTeam::gradients() const {
    return assemble([](const Program& program, const Value& value) {
        return value.role == Role::gradient && std::ranges::none_of(program.ops, [&](const Op& op) {
                   return op.kind == OpKind::reduce_scatter && op.micro_batch < 0 &&
                          byte_range(program, op.reads[0]).overlaps(byte_range(program, value.id));
               });
    });
}

}  // namespace atl::test
