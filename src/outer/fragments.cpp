#include "outer/fragments.h"

#include <algorithm>
#include <charconv>

#include "core/check.h"

namespace atl {

std::optional<int> layer_of_tensor(const std::string& name) {
    std::size_t begin = 0;
    while (begin < name.size()) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        int layer = 0;
        const auto [rest, error] = std::from_chars(name.data() + begin, name.data() + end, layer);
        if (error == std::errc() && rest == name.data() + end && layer >= 0) return layer;
        begin = end + 1;
    }
    return std::nullopt;
}

FragmentId fragment_of_layer(std::optional<int> layer, int fragments) {
    ATOLL_CHECK(fragments > 0 && layer.value_or(0) >= 0);
    return FragmentId(layer.value_or(0) % fragments);
}

std::vector<std::vector<OuterSlice>> cut_into_fragments(
    std::vector<std::pair<std::string, std::int64_t>> tensors_and_elements, int fragments) {
    std::ranges::sort(tensors_and_elements);
    std::vector<std::vector<OuterSlice>> slices(static_cast<std::size_t>(fragments));
    std::int64_t parameter = 0;
    for (const auto& [tensor, elements] : tensors_and_elements) {
        const FragmentId fragment = fragment_of_layer(layer_of_tensor(tensor), fragments);
        auto& of_fragment = slices[static_cast<std::size_t>(fragment.value())];
        const std::int64_t begin =
            of_fragment.empty() ? 0 : of_fragment.back().begin + of_fragment.back().elements;
        of_fragment.push_back(
            {.tensor = tensor, .begin = begin, .elements = elements, .first_parameter = parameter});
        parameter += elements;
    }
    return slices;
}

}  // namespace atl
