#include "outer/outer_state.h"

#include <utility>

#include "core/check.h"

namespace atl {

OuterFragment::OuterFragment(std::vector<OuterSlice> slices, bool with_momentum, bool with_residual)
    : slices_(std::move(slices)) {
    std::int64_t elements = 0;
    for (const auto& slice : slices_) {
        ATOLL_CHECK_EQ(slice.begin, elements, "slice {}", slice.tensor);
        elements += slice.elements;
    }
    const auto size = static_cast<std::size_t>(elements);
    anchor_.resize(size);
    if (with_momentum) momentum_.resize(size);
    if (with_residual) residual_.resize(size);
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
    add("residual/", residual_);
    return sections;
}

std::vector<OuterSlice> consecutive_slices(
    const std::vector<std::pair<std::string, std::int64_t>>& tensors_and_elements) {
    std::vector<OuterSlice> slices;
    std::int64_t begin = 0;
    for (const auto& [tensor, elements] : tensors_and_elements) {
        slices.push_back({tensor, begin, elements});
        begin += elements;
    }
    return slices;
}

}  // namespace atl
