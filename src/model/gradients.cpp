#include "model/gradients.h"

#include <algorithm>

#include "core/check.h"
#include "model/model_layout.h"

namespace atl {

Gradients::Gradients(StepBuilder& builder, Collectives& collectives, const ModelShape& shape,
                     const ParallelShape& parallel)
    : builder_(builder),
      collectives_(collectives),
      parallel_(parallel),
      rank_(builder.program().rank),
      cells_(cut_into_cells(parameter_layout(shape, parallel))) {
    const auto here = rank_shape(shape, parallel, rank_);
    const bool has_both_ends = here.has_embedding && here.has_head;
    if (shape.tied && has_both_ends && parallel.stages() > 1)
        tied_ends_ = model_parts(shape).token_embedding->name;
}

void Gradients::add(ModelParts<Parameter>& parameters, std::int64_t bucket_bytes) {
    std::map<std::vector<Rank>, Bucket> open;
    DType dtype = DType::f32;
    for_each_backward(parameters, [&](Parameter& parameter) {
        const auto& weight = builder_.program().value(parameter.weight);
        dtype = weight.dtype;
        auto& entry = entries_.emplace_back(Entry{.parameter = &parameter, .runs = {}});
        for (const auto& shared : shared_rows(parameter.pieces, cells_)) entry.runs.push_back({shared});
        const auto& first = entry.runs.front().shared;
        if (entry.runs.size() > 1 || has_both_ends(parameter) || spans_stages(first.holders) ||
            is_update_split(parameter.pieces, first, parallel_))
            return add_apart(entry, dtype);
        auto& bucket = open[first.holders];
        bucket.entries.push_back(entries_.size() - 1);
        bucket.elements += element_count(weight.shape);
        if (bucket.elements * size_bytes(dtype) >= bucket_bytes) close(bucket, first.holders, dtype);
    });
    for (auto& [holders, bucket] : open)
        if (!bucket.entries.empty()) close(bucket, holders, dtype);
}

void Gradients::close(Bucket& bucket, const std::vector<Rank>& holders, DType dtype) {
    const auto value = builder_.add(Value{.name = fmt::format("bucket_{}", buckets_++),
                                          .shape = {bucket.elements},
                                          .dtype = dtype,
                                          .role = Role::gradient});
    std::int64_t offset = 0;
    for (const auto index : bucket.entries) {
        auto& [parameter, runs] = entries_[index];
        parameter->gradient = add_stacked(
            builder_, parameter->pieces,
            {.prefix = "grad/", .dtype = dtype, .role = Role::gradient, .view_of = ValueView{value, offset}});
        offset += element_count(parameter->pieces.shape());
        runs.front().sum = sums_.size();
    }
    sums_.push_back({.partial = value, .reduced = value, .also = std::nullopt, .holders = holders});
    bucket = {};
}

void Gradients::add_apart(Entry& entry, DType dtype) {
    auto& parameter = *entry.parameter;
    const auto add_value = [&](const char* prefix, const PackedPieces& pieces) {
        return add_stacked(builder_, pieces, {.prefix = prefix, .dtype = dtype, .role = Role::gradient});
    };
    parameter.gradient = add_value("grad/", parameter.pieces);
    if (has_both_ends(parameter)) {
        Value twin = builder_.program().value(parameter.gradient);
        twin.name += ".head";
        twin.box.reset();
        parameter.head_gradient = builder_.add(std::move(twin));
    }
    for (auto& [shared, index] : entry.runs) {
        index = sums_.size();
        Sum sum{.partial = add_rows(builder_, parameter.gradient, shared.rows),
                .also = parameter.head_gradient,
                .holders = shared.holders,
                .is_late = has_both_ends(parameter) || spans_stages(shared.holders)};
        sum.reduced = is_update_split(parameter.pieces, shared, parallel_)
                          ? add_value("reduced/", select_rows(parameter.pieces, {share_of(shared, rank_)}))
                          : sum.partial;
        sums_.push_back(std::move(sum));
    }
}

bool Gradients::has_both_ends(const Parameter& parameter) const {
    return parameter.pieces.name == tied_ends_;
}

bool Gradients::spans_stages(const std::vector<Rank>& holders) const {
    return std::ranges::any_of(
        holders, [&](Rank rank) { return place_of(parallel_, rank).pp != place_of(parallel_, rank_).pp; });
}

void Gradients::emit_reductions() {
    builder_.open({StepPart::reduction});
    for (const auto& sum : sums_)
        if (!sum.is_late) emit(sum);
}

void Gradients::emit_late_reductions() {
    for (const auto& sum : sums_)
        if (sum.is_late) emit(sum);
}

void Gradients::emit(const Sum& sum) {
    if (sum.also)
        builder_.add(Op{.kind = OpKind::add,
                        .attributes = NoAttributes{},
                        .reads = {sum.partial, *sum.also},
                        .writes = {sum.partial}});
    if (sum.holders.size() == 1) return;
    const auto kind = sum.is_split() ? OpKind::reduce_scatter : OpKind::all_reduce;
    builder_.add(collectives_.make(kind, sum.holders, sum.partial, sum.reduced));
}

bool Gradients::is_counted_once() const {
    return parallel_.tp > 1 || parallel_.pp > 1 || (parallel_.zero && parallel_.dp > 1);
}

std::vector<ValueId> Gradients::add_counted() {
    std::vector<ValueId> counted;
    if (!is_counted_once()) {
        for (const auto& entry : entries_) counted.push_back(entry.parameter->gradient);
        return counted;
    }
    for (const auto& sum : sums_) {
        const SharedRows all{{0, builder_.program().value(sum.partial).shape.front()}, sum.holders};
        counted.push_back(sum.is_split() ? sum.reduced
                                         : add_rows(builder_, sum.partial, share_of(all, rank_)));
    }
    return counted;
}

ValueId Gradients::add_moment(const char* prefix, const PackedPieces& pieces, DType dtype) {
    return add_stacked(builder_, pieces, {.prefix = prefix, .dtype = dtype, .role = Role::state});
}

// Of an optimizer that works on matrices: each tensor of the stack by itself.
void Gradients::add_whole_matrices(const Entry& entry, std::vector<ParameterUpdate>& updates) {
    const Parameter& parameter = *entry.parameter;
    std::int64_t row = 0;
    for (const TensorPiece& piece : parameter.pieces.pieces) {
        ATOLL_CHECK(piece.box == Box::whole(piece.tensor.shape), "{} is not whole on this rank", piece.name);
        const Range rows{row, row + piece.tensor.shape.front()};
        const PackedPieces matrix = select_rows(parameter.pieces, {rows});
        updates.push_back(
            {.weight = add_rows(builder_, parameter.weight, rows),
             .gradient = add_rows(builder_, parameter.gradient, rows),
             .first_moment = add_moment("m/", matrix, builder_.program().value(parameter.weight).dtype),
             .second_moment = std::nullopt,
             .decays = matrix.decays(),
             .gathered_weight = std::nullopt,
             .holders = {}});
        row = rows.end;
    }
}

std::vector<ParameterUpdate> Gradients::add_updates(Moments moments) {
    std::vector<ParameterUpdate> updates;
    const auto add = [&](const PackedPieces& pieces, ValueId weight, ValueId gradient) -> ParameterUpdate& {
        auto& update = updates.emplace_back();
        update.weight = weight;
        update.gradient = gradient;
        update.decays = pieces.decays();
        const auto dtype = builder_.program().value(weight).dtype;
        if (moments != Moments::none) {
            update.first_moment = add_moment("m/", pieces, dtype);
            update.second_moment = add_moment("v/", pieces, dtype);
        }
        return update;
    };
    for (const Entry& entry : entries_) {
        const auto& [parameter, runs] = entry;
        const auto is_split = [&](const Run& run) { return sums_[run.sum].is_split(); };
        if (moments == Moments::one_of_hidden) {
            ATOLL_CHECK(std::ranges::none_of(runs, is_split), "{} is updated in parts", parameter->pieces.name);
            if (parameter->pieces.hidden()) {
                add_whole_matrices(entry, updates);
                continue;
            }
        }
        if (std::ranges::none_of(runs, is_split)) {
            add(parameter->pieces, parameter->weight, parameter->gradient);
            continue;
        }
        for (const auto& run : runs) {
            const auto rows = updated_rows(parameter->pieces, run.shared, parallel_, rank_);
            auto& update = add(select_rows(parameter->pieces, {rows}),
                               add_rows(builder_, parameter->weight, rows), sums_[run.sum].reduced);
            if (!is_split(run)) continue;
            update.gathered_weight = add_rows(builder_, parameter->weight, run.shared.rows);
            update.holders = run.shared.holders;
        }
    }
    return updates;
}

}  // namespace atl
