#include "outer/outer_state.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace atl {

OuterFragment::OuterFragment(std::vector<OuterSlice> slices, const OuterBuffers& buffers)
    : slices_(std::move(slices)) {
    std::int64_t elements = 0;
    for (const auto& slice : slices_) {
        ATOLL_CHECK_EQ(slice.begin, elements, "slice {}", slice.tensor);
        elements += slice.elements;
    }
    const auto size = static_cast<std::size_t>(elements);
    anchor_.resize(size);
    if (buffers.momentum) momentum_.resize(size);
    if (buffers.second_moment) second_moment_.resize(size);
    if (buffers.residual) residual_.resize(size);
    if (buffers.own_start) start_.resize(size);
    if (buffers.own_momentum) own_momentum_.resize(size);
}

void OuterFragment::return_to_anchor() {
    if (!start_.empty()) std::ranges::copy(anchor_, start_.begin());
}

void OuterFragment::forget_own() {
    std::ranges::fill(residual_, 0.0F);
    std::ranges::fill(own_momentum_, 0.0F);
    return_to_anchor();
    end_pending();
}

void OuterFragment::gather(std::span<const float> parameters, std::span<float> part) const {
    ATOLL_CHECK_EQ(part.size(), anchor_.size());
    for (const OuterSlice& slice : slices_) {
        const auto from = parameters.subspan(static_cast<std::size_t>(slice.first_parameter),
                                             static_cast<std::size_t>(slice.elements));
        std::ranges::copy(from, part.begin() + slice.begin);
    }
}

void OuterFragment::scatter(std::span<const float> part, std::span<float> parameters) const {
    ATOLL_CHECK_EQ(part.size(), anchor_.size());
    for (const OuterSlice& slice : slices_) {
        const auto from = part.subspan(static_cast<std::size_t>(slice.begin),
                                       static_cast<std::size_t>(slice.elements));
        std::ranges::copy(from, parameters.begin() + slice.first_parameter);
    }
}

std::vector<OuterFragment::Section> OuterFragment::sections() {
    std::vector<Section> sections;
    const auto add = [&](const char* kind, std::vector<float>& buffer) {
        if (buffer.empty()) return;
        for (std::size_t i = 0; i < slices_.size(); ++i) {
            const auto& slice = slices_[i];
            sections.push_back({kind + slice.tensor, i,
                                std::span(buffer).subspan(static_cast<std::size_t>(slice.begin),
                                                          static_cast<std::size_t>(slice.elements))});
        }
    };
    add("anchor/", anchor_);
    add("outer_momentum/", momentum_);
    add("outer_second/", second_moment_);
    add("residual/", residual_);
    add("start/", start_);
    add("own_momentum/", own_momentum_);
    add("pending/", pending_);
    return sections;
}

}  // namespace atl
