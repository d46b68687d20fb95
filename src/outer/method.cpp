#include "outer/method.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/check.h"
#include "outer/methods/methods.h"

namespace atl {
namespace {

using NamedMethod = std::pair<std::string_view, const OuterMethod& (*)()>;
constexpr std::array<NamedMethod, 6> kMethods{{{"diloco", diloco_method},
                                               {"average", average_method},
                                               {"adam", adam_method},
                                               {"sparse_loco", sparse_loco_method},
                                               {"delayed", delayed_method},
                                               {"eager", eager_method}}};

}  // namespace

OuterBuffers OuterMethod::buffers(OuterRule rule) const {
    return {.momentum = has_momentum(rule), .second_moment = has_second_moment(rule)};
}

void OuterMethod::contribution(const OuterFragment& fragment, std::span<const float> local,
                               std::span<float> delta) const {
    atl::contribution(fragment.start(), local, delta);
}

void OuterMethod::apply(OuterFragment& fragment, const OuterSettings& settings, const OuterResult& result,
                        std::span<float> local) const {
    OuterSettings own = settings;
    // A site whose own work does not count goes on from what all agree on.
    if (result.share == 0) own.alpha = 0;
    apply_outer(own, result.round, result.mean, fragment.anchor(), fragment.moments(), local);
    fragment.end_pending();
}

void OuterMethod::keep_for_next_round(OuterFragment& fragment, const OuterResult& result,
                                      std::span<const float> local) const {
    if (!result.overlapped || result.share == 0) return fragment.end_pending();
    fragment.make_pending();
    contribution(fragment, local, fragment.pending());
}

const OuterMethod& outer_method(std::string_view name) {
    const auto found = std::ranges::find(kMethods, name, &NamedMethod::first);
    ATOLL_CHECK(found != kMethods.end(), "no outer method is called {}", name);
    return found->second();
}

std::vector<std::string_view> outer_method_names() {
    std::vector<std::string_view> names;
    for (const NamedMethod& method : kMethods) names.push_back(method.first);
    return names;
}

}  // namespace atl
