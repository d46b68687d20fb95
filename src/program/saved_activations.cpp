#include "program/saved_activations.h"

#include <algorithm>
#include <map>

namespace atl {
namespace {

// What computes the loss also begins its gradient.
bool begins_backward(OpKind kind) {
    return kind == OpKind::cross_entropy || kind == OpKind::cross_entropy_parallel ||
           name(kind).find("_backward") != std::string_view::npos;
}

std::int64_t saved_layer_bytes(const Program& program) {
    std::map<ValueId, std::int32_t> written_in;       // forward: layer
    std::map<std::int32_t, std::int64_t> kept_bytes;  // [layer]
    bool is_backward = false;
    for (const auto& op : program.ops) {
        if (op.micro_batch != 0) continue;
        is_backward = is_backward || begins_backward(op.kind);
        const auto base_of = [&](ValueId id) { return program.resolve(id).base; };
        const auto touch = [&](ValueId base) {
            const auto found = written_in.find(base);
            if (found == written_in.end()) return;
            kept_bytes[found->second] += program.value(base).bytes();
            written_in.erase(found);  // it counts once
        };
        if (is_backward) {
            for (const auto id : op.reads) touch(base_of(id));
            for (const auto id : op.writes) touch(base_of(id));
        } else if (op.layer >= 0) {
            for (const auto id : op.writes)
                if (program.value(base_of(id)).role == Role::activation)
                    written_in.try_emplace(base_of(id), op.layer);
        }
    }
    if (kept_bytes.empty()) return 0;
    return std::ranges::min_element(kept_bytes, {}, [](const auto& layer) { return layer.second; })->second;
}

}  // namespace

std::int64_t saved_layer_bytes(const std::vector<Program>& programs) {
    std::int64_t most = 0;
    for (const auto& program : programs) most = std::max(most, saved_layer_bytes(program));
    return most;
}

}  // namespace atl
