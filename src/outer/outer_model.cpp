#include "outer/outer_model.h"

#include <algorithm>

#include "codec/error_feedback.h"
#include "core/check.h"
#include "outer/fragments.h"

namespace atl {

OuterModel::OuterModel(const OuterModelOptions& options) {
    for (auto& slices : cut_into_fragments(options.tensors_and_elements, options.fragments))
        fragments_.emplace_back(std::move(slices), options.buffers);
}

void OuterModel::begin(std::span<const float> parameters) {
    for (OuterFragment& fragment : fragments_) {
        fragment.gather(parameters, fragment.anchor());
        std::ranges::fill(fragment.momentum(), 0.0F);
        std::ranges::fill(fragment.second_moment(), 0.0F);
    }
    clear_residuals();
    end_pending();
}

void OuterModel::copy_anchors(std::span<float> parameters) const {
    for (const OuterFragment& fragment : fragments_) fragment.scatter(fragment.anchor(), parameters);
}

void OuterModel::clear_residuals() {
    for (OuterFragment& fragment : fragments_) std::ranges::fill(fragment.residual(), 0.0F);
}

void OuterModel::end_pending() {
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

void OuterModel::contribute(FragmentId id, std::span<const float> local, float error_feedback,
                            std::span<float> delta) {
    OuterFragment& fragment = this->fragment(id);
    fragment.gather(local, delta);
    contribution(fragment.anchor(), delta, delta);
    if (!fragment.residual().empty()) add_residual(fragment.residual(), error_feedback, delta);
}

void OuterModel::apply(FragmentId id, const OuterSettings& settings, Round round,
                       std::span<const float> mean_delta, std::span<float> local) {
    OuterFragment& fragment = this->fragment(id);
    part_.resize(static_cast<std::size_t>(fragment.elements()));
    fragment.gather(local, part_);
    apply_outer(settings, round, mean_delta, fragment.anchor(),
                {.momentum = fragment.momentum(), .second = fragment.second_moment()}, part_);
    fragment.scatter(part_, local);
    fragment.end_pending();
}

}  // namespace atl
