// What an optimizer multiplies summed gradients by: one over the tokens, less where the global norm is clipped.
#pragma once

#include <algorithm>
#include <cmath>

namespace atl::kernels {

// min(1, grad_clip / norm) / tokens with norm = sqrt(norm2) / tokens; grad_clip 0: no clipping.
inline double gradient_scale(double norm2, double tokens, double grad_clip) {
    const double norm = std::sqrt(norm2) / tokens;
    const double clip = grad_clip > 0 && norm > 0 ? std::min(1.0, grad_clip / norm) : 1.0;
    return clip / tokens;
}

// Whether there is a step to do: gradients are finite, and some token had a loss.
inline bool is_steppable(double norm2, double tokens) {
    return std::isfinite(norm2) && tokens > 0;
}

}  // namespace atl::kernels
