#include "program/interleave.h"

namespace atl {
namespace {

bool is_link(Resource resource) {
    return resource == Resource::link_intra || resource == Resource::link_inter ||
           resource == Resource::link_wan;
}

struct Segment {
    std::vector<OpId> ops;
    double done_before = 0;  // share of its strand's layers
};

// Compute ops and the communication that follows them, be it the next layer's.
std::vector<Segment> cut(const Program& program, const LayerOps& layers) {
    std::vector<Segment> segments;
    bool at_cut = true;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
        const auto first = segments.size();
        for (const auto id : layers[layer]) {
            const bool communicates = is_link(program.op(id).resource);
            if (segments.empty() || (at_cut && !communicates)) segments.emplace_back();
            segments.back().ops.push_back(id);
            at_cut = communicates;
        }
        const auto count = static_cast<double>(segments.size() - first);
        for (auto i = first; i < segments.size(); ++i)
            segments[i].done_before = (static_cast<double>(layer) + static_cast<double>(i - first) / count) /
                                      static_cast<double>(layers.size());
    }
    return segments;
}

}  // namespace

std::vector<OpId> interleave(const Program& program, const LayerOps& first, const LayerOps& second) {
    const auto ours = cut(program, first), theirs = cut(program, second);
    std::vector<OpId> order;
    std::size_t i = 0, j = 0;
    while (i < ours.size() || j < theirs.size()) {
        const bool take_first =
            j == theirs.size() || (i < ours.size() && ours[i].done_before <= theirs[j].done_before);
        const auto& ops = take_first ? ours[i++].ops : theirs[j++].ops;
        order.insert(order.end(), ops.begin(), ops.end());
    }
    return order;
}

}  // namespace atl
