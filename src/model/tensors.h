// The logical tensors of a model: Hugging Face names, shapes, how they begin, whether they decay.
//
// Linear weights are [out, in]; Hugging Face stores those of GPT-2 transposed, which hugging_face.h knows. A tied
// head is no tensor of its own. Order: embedding, layers, final norm, head.
#pragma once

#include <string>
#include <vector>

#include "layout/box.h"
#include "model/model_shape.h"

namespace atl {

enum class InitialValues : std::uint8_t {
    normal,           // N(0, 0.02²)
    scaled_residual,  // N(0, (0.02 / sqrt(2 layers))²): what is added to the residual stream
    ones,
    zeros,
};

struct TensorSpec {
    std::string name;
    Shape shape;
    InitialValues initial = InitialValues::normal;
    bool decays = false;  // weight decay: matrices only, neither norms nor biases
    bool hidden = false;  // a matrix inside a layer: neither embedding nor head
    bool operator==(const TensorSpec&) const = default;
};

std::vector<TensorSpec> model_tensors(const ModelShape& shape);
std::int64_t parameter_count(const ModelShape& shape);

}  // namespace atl
