// How a model is cut into fragments that are exchanged apart. Layers go to fragments in strides, so each has early and
// late ones; what belongs to no layer (embeddings, head, final norm) is in fragment 0.
//
// Tensors are those of the whole model, sorted by name: the order of the flat list of all parameters, and within each
// fragment. Pure. Source: Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512), section 2.2: strided fragments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "outer/outer_state.h"

namespace atl {

// The number among the parts of a tensor's name, as Hugging Face names them ("model.layers.3.mlp.up_proj.weight"); none:
// it belongs to no layer.
std::optional<int> layer_of_tensor(const std::string& name);

FragmentId fragment_of_layer(std::optional<int> layer, int fragments);

// The slices of each fragment, of tensors given with their numbers of elements in any order.
std::vector<std::vector<OuterSlice>> cut_into_fragments(
    std::vector<std::pair<std::string, std::int64_t>> tensors_and_elements, int fragments);

}  // namespace atl
