#include "model/parallel_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace atl {
namespace {

// The middle of a pipeline passes the residual stream on from layer to layer; a stage without any would have none.
void check_stage_layers(const ModelShape& shape, const ParallelShape& parallel,
                        std::vector<std::string>& found) {
    const auto stages = parallel.stages();
    if (!parallel.stage_layers.empty()) {
        const auto& layers = parallel.stage_layers;
        if (static_cast<std::int32_t>(layers.size()) != stages) {
            found.push_back(fmt::format("stage_layers names {} stages, pp {} with chunks {} has {}",
                                        layers.size(), parallel.pp, parallel.chunks, stages));
            return;
        }
        if (const auto sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
            sum != shape.layers)
            found.push_back(
                fmt::format("stage_layers add up to {}, the model has {} layers", sum, shape.layers));
    }
    for (std::int32_t stage = 0; stage < stages; ++stage) {
        const bool is_end = stage == 0 || stage == stages - 1;
        if (const auto layers = stage_layers(shape, parallel, stage).size(); layers < (is_end ? 0 : 1))
            found.push_back(fmt::format("stage {} of {} has {} layers", stage, stages, layers));
    }
}

}  // namespace

RankPlace place_of(const ParallelShape& parallel, Rank rank) {
    const auto number = rank.value();
    ATOLL_CHECK(number >= 0 && number < parallel.ranks(), "rank {} of {}", number, parallel.ranks());
    const auto plane = number / parallel.tp;
    return {number % parallel.tp, plane % parallel.pp, plane / parallel.pp};
}

Rank rank_at(const ParallelShape& parallel, const RankPlace& place) {
    return Rank((place.dp * parallel.pp + place.pp) * parallel.tp + place.tp);
}

Range nearly_equal_range(std::int64_t count, std::int32_t parts, std::int32_t part) {
    return {count * part / parts, count * (part + 1) / parts};
}

Range stage_layers(const ModelShape& shape, const ParallelShape& parallel, std::int32_t stage) {
    if (parallel.stage_layers.empty()) return nearly_equal_range(shape.layers, parallel.stages(), stage);
    const auto first = parallel.stage_layers.begin();
    const auto begin = std::accumulate(first, first + stage, std::int64_t{0});
    return {begin, begin + parallel.stage_layers[static_cast<std::size_t>(stage)]};
}

std::vector<std::string> problems(const ModelShape& shape, const ParallelShape& parallel,
                                  std::int64_t tokens) {
    std::vector<std::string> found;
    const auto at_least_one = [&](const char* name, std::int32_t value) {
        if (value < 1) found.push_back(fmt::format("{} is {}, less than 1", name, value));
    };
    at_least_one("tp", parallel.tp);
    at_least_one("pp", parallel.pp);
    at_least_one("dp", parallel.dp);
    at_least_one("chunks", parallel.chunks);
    if (!found.empty()) return found;
    if (parallel.placement == StagePlacement::fold && parallel.chunks != 2)
        found.push_back(fmt::format("chunks is {}; a folded pipeline has 2", parallel.chunks));
    const auto enough = [&](const char* what, std::int64_t count) {
        if (parallel.tp > count)
            found.push_back(fmt::format("tp {} is more than the {} {}", parallel.tp, count, what));
    };
    enough("heads", shape.heads);
    enough("feed-forward rows", shape.ffn);
    enough("vocabulary rows", shape.vocab);
    enough("tokens of a micro-batch", tokens);
    check_stage_layers(shape, parallel, found);
    return found;
}

}  // namespace atl
