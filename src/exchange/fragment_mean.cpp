#include "exchange/fragment_mean.h"

namespace atl {

void FragmentMean::prepare(const FragmentPlan& layout, const AttemptPlan& basis) {
    const bool same_sum = layout == layout_ && basis.round == basis_.round && basis.direct == basis_.direct &&
                          basis.contributors == basis_.contributors &&
                          (basis.direct || basis.attempt == basis_.attempt);
    if (same_sum) return;
    layout_ = layout;
    basis_ = basis;
    values_.resize(static_cast<std::size_t>(layout.elements));
    has_.assign(static_cast<std::size_t>(layout.chunks()), false);
}

std::span<float> FragmentMean::chunk(std::int64_t chunk) {
    return std::span(values_).subspan(static_cast<std::size_t>(layout_.chunk_begin(chunk)),
                                      static_cast<std::size_t>(layout_.chunk_size(chunk)));
}

}  // namespace atl
