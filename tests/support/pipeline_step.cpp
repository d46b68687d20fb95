#include "support/pipeline_step.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace atl::test {
namespace {

class Emitter {
  public:
    Emitter(const PipelineStepOptions& options, std::int32_t data, std::int32_t pipeline, std::int32_t tensor)
        : options_(options),
          data_(data),
          pipeline_(pipeline),
          tensor_(tensor),
          builder_(rank_at(data, pipeline, tensor), options.layers, options.micro_batches) {}

    StepOps run() {
        add_groups();
        const auto& shape = options_.pipeline;
        for (const auto stage : shape.stages_of(pipeline_)) {
            const bool is_first = stage == 0, is_last = stage == shape.stages() - 1;
            const auto begin = options_.layers * stage / shape.stages();
            const auto end = options_.layers * (stage + 1) / shape.stages();
            stages_.push_back({stage, is_first ? kEmbeddingLayer : begin, end + (is_last ? 1 : 0)});
            builder_.add_stage(stages_.back());
            for (auto layer = stages_.back().begin_layer; layer < stages_.back().end_layer; ++layer)
                add_parameter(layer);
        }
        for (std::int32_t k = 0; k < options_.micro_batches; ++k) {
            const auto count = stages_.size();
            for (std::size_t i = 0; i < count; ++i) forward(stages_[i], k);
            for (std::size_t i = count; i-- > 0;) backward(stages_[i], k);
        }
        add_reductions_and_optimizer();
        return builder_.take();
    }

  private:
    struct Parameter {
        ValueId weight, gradient;
        bool is_written = false;
    };
    struct Saved {
        ValueId input, product;
    };

    Rank rank_at(std::int32_t data, std::int32_t pipeline, std::int32_t tensor) const {
        return Rank((data * options_.pipeline.ranks + pipeline) * options_.tensor_ranks + tensor);
    }
    bool is_head(std::int32_t layer) const { return layer == options_.layers; }
    Shape piece() const { return {options_.tokens, options_.hidden}; }
    Shape whole() const { return {options_.tokens * options_.tensor_ranks, options_.hidden}; }

    ValueId value(const std::string& name, Shape shape, Role role = Role::activation,
                  DType dtype = DType::f32) {
        return builder_.add(Value{.name = name, .shape = std::move(shape), .dtype = dtype, .role = role});
    }
    ValueId activation(const char* name, Shape shape) {
        return value(fmt::format("mb{}.{}.{}", micro_batch_, layer_, name), std::move(shape));
    }
    void emit(StepPart phase, Op op) {
        builder_.open({phase, layer_, micro_batch_});
        if (op.resource == Resource::compute) op.flops = static_cast<double>(op.writes.size());
        builder_.add(std::move(op));
    }

    void add_groups() {
        std::vector<Rank> tensor, data, world;
        for (std::int32_t i = 0; i < options_.tensor_ranks; ++i)
            tensor.push_back(rank_at(data_, pipeline_, i));
        for (std::int32_t i = 0; i < options_.data_ranks; ++i) data.push_back(rank_at(i, pipeline_, tensor_));
        const auto ranks = options_.data_ranks * options_.pipeline.ranks * options_.tensor_ranks;
        for (std::int32_t i = 0; i < ranks; ++i) world.push_back(Rank(i));
        if (options_.tensor_ranks > 1) builder_.add_group("tp", tensor);
        if (options_.data_ranks > 1) builder_.add_group("dp", data);
        if (ranks > 1) builder_.add_group("world", world);
    }

    void add_parameter(std::int32_t layer) {
        const Shape shape{options_.hidden, options_.hidden};
        parameters_[layer] = {value(fmt::format("w{}", layer), shape, Role::parameter),
                              value(fmt::format("grad/w{}", layer), shape, Role::gradient)};
    }

    AccumulateAttributes accumulate(Parameter& parameter) const {
        return {std::exchange(parameter.is_written, true)};
    }

    // All pieces' tokens on every tensor-parallel rank, and the sum of products back in pieces.
    ValueId collective(StepPart phase, OpKind kind, const char* name, ValueId read, Shape shape) {
        const auto written = activation(name, std::move(shape));
        emit(phase, {.kind = kind,
                     .attributes = CollectiveAttributes{"tp", 0},
                     .reads = {read},
                     .writes = {written},
                     .resource = Resource::link_intra,
                     .bytes = builder_.program().value(read).bytes()});
        return written;
    }
    ValueId gather(StepPart phase, const char* name, ValueId read) {
        return options_.tensor_ranks == 1 ? read : collective(phase, OpKind::all_gather, name, read, whole());
    }
    ValueId scatter(StepPart phase, const char* name, ValueId read) {
        return options_.tensor_ranks == 1 ? read
                                          : collective(phase, OpKind::reduce_scatter, name, read, piece());
    }

    // What comes from a stage: by message, or, on this rank, as it is.
    ValueId take(StepPart phase, std::int32_t stage, const char* name, std::map<std::int32_t, ValueId>& here) {
        const auto peer = options_.pipeline.rank_of(stage);
        if (peer == pipeline_) return here.at(stage);
        const auto received = activation(name, piece());
        emit(phase, {.kind = OpKind::receive,
                     .attributes = PointToPointAttributes{rank_at(data_, peer, tensor_), 0},
                     .writes = {received},
                     .resource = Resource::receive,
                     .bytes = builder_.program().value(received).bytes()});
        return received;
    }
    void pass_on(StepPart phase, std::int32_t from, std::int32_t to, ValueId what,
                 std::map<std::int32_t, ValueId>& here) {
        const auto peer = options_.pipeline.rank_of(to);
        if (peer == pipeline_) {
            here[from] = what;
            return;
        }
        emit(phase, {.kind = OpKind::send,
                     .attributes = PointToPointAttributes{rank_at(data_, peer, tensor_), 0},
                     .reads = {what},
                     .resource = Resource::send,
                     .bytes = builder_.program().value(what).bytes()});
    }

    void forward(const StageBlocks& stage, std::int32_t k) {
        micro_batch_ = k;
        layer_ = stage.begin_layer;
        ValueId x;
        if (stage.stage > 0) x = take(StepPart::forward, stage.stage - 1, "received", outputs_);
        for (; layer_ < stage.end_layer; ++layer_) x = layer_forward(x);
        if (is_head(--layer_)) {
            gradients_[stage.stage + 1] = x;
            return;
        }
        pass_on(StepPart::forward, stage.stage, stage.stage + 1, x, outputs_);
    }

    ValueId layer_forward(ValueId x) {
        const auto weight = parameters_.at(layer_).weight;
        if (layer_ == kEmbeddingLayer) {
            const auto tokens =
                value(fmt::format("tokens_{}", micro_batch_), {options_.tokens}, Role::input, DType::i32);
            const auto embedded = activation("embedded", piece());
            emit(StepPart::forward, {.kind = OpKind::embedding,
                                  .attributes = RowAttributes{},
                                  .reads = {tokens, weight},
                                  .writes = {embedded}});
            return embedded;
        }
        const auto input = gather(StepPart::forward, "gathered", x);
        const auto product = activation("product", whole());
        emit(StepPart::forward, {.kind = OpKind::linear, .reads = {input, weight}, .writes = {product}});
        saved_[layer_] = {input, product};
        if (is_head(layer_)) return loss(product);
        const auto activated = activation("activated", whole());
        emit(StepPart::forward, {.kind = OpKind::gelu, .reads = {product}, .writes = {activated}});
        return scatter(StepPart::forward, "scattered", activated);
    }

    ValueId loss(ValueId logits) {
        const auto targets = value(fmt::format("targets_{}", micro_batch_),
                                   {options_.tokens * options_.tensor_ranks}, Role::input, DType::i32);
        const auto sum = value(fmt::format("loss_{}", micro_batch_), {1}, Role::output, DType::f64);
        Value view = builder_.program().value(logits);
        view.name = fmt::format("mb{}.dlogits", micro_batch_);
        view.view_of = ValueView{logits, 0};
        const auto dlogits = builder_.add(std::move(view));
        emit(StepPart::forward,
             {.kind = OpKind::cross_entropy, .reads = {logits, targets}, .writes = {sum, dlogits}});
        return dlogits;
    }

    void backward(const StageBlocks& stage, std::int32_t k) {
        micro_batch_ = k;
        layer_ = stage.end_layer - 1;
        auto dx = is_head(layer_) ? gradients_.at(stage.stage + 1)
                                  : take(StepPart::backward_input, stage.stage + 1, "dreceived", gradients_);
        for (; layer_ >= stage.begin_layer; --layer_) dx = layer_backward(dx);
        ++layer_;
        if (stage.stage > 0) pass_on(StepPart::backward_input, stage.stage, stage.stage - 1, dx, gradients_);
    }

    ValueId layer_backward(ValueId dx) {
        auto& parameter = parameters_.at(layer_);
        if (layer_ == kEmbeddingLayer) {
            emit(StepPart::backward_weight,
                 {.kind = OpKind::embedding_backward,
                  .attributes = accumulate(parameter),
                  .reads = {builder_.program().find(fmt::format("tokens_{}", micro_batch_)), dx},
                  .writes = {parameter.gradient}});
            return dx;
        }
        const auto [input, product] = saved_.at(layer_);
        auto dproduct = dx;
        if (!is_head(layer_)) {
            const auto dactivated = gather(StepPart::backward_input, "dgathered", dx);
            dproduct = activation("dproduct", whole());
            emit(StepPart::backward_input,
                 {.kind = OpKind::gelu_backward, .reads = {dactivated, product}, .writes = {dproduct}});
        }
        emit(StepPart::backward_weight, {.kind = OpKind::linear_backward_weight,
                                      .attributes = accumulate(parameter),
                                      .reads = {dproduct, input},
                                      .writes = {parameter.gradient}});
        const auto dinput = activation("dinput", whole());
        emit(StepPart::backward_input, {.kind = OpKind::linear_backward_input,
                                     .reads = {dproduct, parameter.weight},
                                     .writes = {dinput}});
        return scatter(StepPart::backward_input, "dscattered", dinput);
    }

    Op sum_over(const char* group, ValueId x) const {
        return {.kind = OpKind::all_reduce,
                .attributes = CollectiveAttributes{group, 0},
                .reads = {x},
                .writes = {x},
                .resource = Resource::link_inter,
                .bytes = builder_.program().value(x).bytes()};
    }

    void add_reductions_and_optimizer() {
        builder_.open({StepPart::reduction});
        if (options_.data_ranks > 1)
            for (const auto& [layer, parameter] : parameters_)
                builder_.add(sum_over("dp", parameter.gradient));
        builder_.open({StepPart::optimizer});
        Op norm{.kind = OpKind::square_sum, .writes = {value("norm2", {1}, Role::output, DType::f64)}};
        for (const auto& [layer, parameter] : parameters_) norm.reads.push_back(parameter.gradient);
        const auto norm2 = norm.writes.front();
        builder_.add(norm);
        if (builder_.program().groups.contains("world")) builder_.add(sum_over("world", norm2));
        const auto scalars = value("scalars", {4}, Role::input, DType::f64);
        for (const auto& [layer, p] : parameters_)
            builder_.add({.kind = OpKind::sgd,
                          .attributes = SgdAttributes{},
                          .reads = {p.gradient, norm2, scalars, p.weight},
                          .writes = {p.weight}});
    }

    const PipelineStepOptions& options_;
    const std::int32_t data_, pipeline_, tensor_;
    StepBuilder builder_;
    std::vector<StageBlocks> stages_;
    std::map<std::int32_t, Parameter> parameters_;         // [layer]
    std::map<std::int32_t, Saved> saved_;                  // [layer], of the micro-batch under way
    std::map<std::int32_t, ValueId> outputs_, gradients_;  // [stage], passed on to another stage here
    std::int32_t micro_batch_ = 0, layer_ = 0;
};

}  // namespace

std::vector<StepOps> make_pipeline_steps(const PipelineStepOptions& options) {
    std::vector<StepOps> steps;
    for (std::int32_t data = 0; data < options.data_ranks; ++data)
        for (std::int32_t pipeline = 0; pipeline < options.pipeline.ranks; ++pipeline)
            for (std::int32_t tensor = 0; tensor < options.tensor_ranks; ++tensor)
                steps.push_back(Emitter(options, data, pipeline, tensor).run());
    return steps;
}

std::vector<Program> expand_all(const std::vector<StepOps>& steps, const ScheduleTable& table) {
    std::vector<Program> programs;
    for (const auto& step : steps) programs.push_back(expand(step, table));
    return programs;
}

}  // namespace atl::test
