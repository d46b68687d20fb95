#include "outer/outer_model.h"

#include <algorithm>

#include "codec/error_feedback.h"
#include "core/check.h"
#include "kernels/outer_step.h"
#include "outer/fragments.h"

namespace atl {

OuterModel::OuterModel(const OuterModelOptions& options) : method_(*options.method) {
    for (auto& slices : cut_into_fragments(options.tensors_and_elements, options.fragments))
        fragments_.emplace_back(std::move(slices), options.buffers);
}

void OuterModel::begin(std::span<const float> parameters) {
    for (OuterFragment& fragment : fragments_) {
        fragment.gather(parameters, fragment.anchor());
        std::ranges::fill(fragment.momentum(), 0.0F);
        std::ranges::fill(fragment.second_moment(), 0.0F);
    }
    forget_own();
}

void OuterModel::copy_anchors(std::span<float> parameters) const {
    for (const OuterFragment& fragment : fragments_) fragment.scatter(fragment.anchor(), parameters);
}

void OuterModel::copy_starts(std::span<float> parameters) const {
    for (const OuterFragment& fragment : fragments_) fragment.scatter(fragment.start(), parameters);
}

void OuterModel::forget_own() {
    for (OuterFragment& fragment : fragments_) fragment.forget_own();
}

void OuterModel::drop_work() {
    if (method_.is_a_round_late()) return;
    for (OuterFragment& fragment : fragments_) fragment.end_pending();
}

std::vector<std::span<float>> OuterModel::shared_parts() {
    std::vector<std::span<float>> parts;
    for (OuterFragment& fragment : fragments_) {
        parts.push_back(fragment.anchor());
        parts.push_back(fragment.momentum());
        parts.push_back(fragment.second_moment());
    }
    return parts;
}

void OuterModel::contribute(FragmentId id, std::span<const float> local, const ContributionOptions& options,
                            std::span<float> delta) {
    OuterFragment& fragment = this->fragment(id);
    const bool kept = !fragment.pending().empty();
    if (kept && options.overlapped) {
        std::ranges::copy(fragment.pending(), delta.begin());
    } else {
        fragment.gather(local, delta);
        method_.contribution(fragment, delta, delta);
        if (kept) kernels::add_weighted(fragment.pending(), 1, delta);
        if (options.overlapped) {
            fragment.make_pending();
            std::ranges::copy(delta, fragment.pending().begin());
        }
    }
    if (!fragment.residual().empty()) add_residual(fragment.residual(), options.error_feedback, delta);
}

void OuterModel::apply(FragmentId id, const OuterSettings& settings, const OuterResult& result,
                       std::span<float> local) {
    OuterFragment& fragment = this->fragment(id);
    part_.resize(static_cast<std::size_t>(fragment.elements()));
    fragment.gather(local, part_);
    method_.apply(fragment, settings, result, part_);
    fragment.scatter(part_, local);
}

}  // namespace atl
