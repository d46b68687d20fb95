#include "codec/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>

#include "codec/block_codecs.h"
#include "codec/dense_codecs.h"
#include "codec/top_k_codec.h"
#include "core/error.h"
#include "kernels/top_k_code.h"

namespace atl {

namespace {

constexpr std::int64_t kDefaultKept = 64;  // 1 in 64, as SparseLoCo
constexpr std::string_view kTopK = "top_k_";

// From many bits an element to few.
struct Codecs {
    explicit Codecs(kernels::InstructionSet set) : owned(make_dense_codecs(set)) {
        for (auto& each : make_block_codecs(set)) owned.push_back(std::move(each));
        owned.push_back(make_top_k_codec(kDefaultKept, set));
        for (const auto& each : owned) all.push_back(each.get());
    }
    std::vector<std::unique_ptr<const Codec>> owned;
    std::vector<const Codec*> all;
};

// The number in "top_k_N", or 0.
std::int64_t kept_by(std::string_view name) {
    if (!name.starts_with(kTopK)) return 0;
    std::int64_t kept = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kTopK.size(), end, kept);
    return error == std::errc() && stop == end && kept <= kernels::kTopKTile ? kept : 0;
}

// Made when it is first asked for, so that equal names are one codec.
const Codec& top_k_codec(std::int64_t kept, kernels::InstructionSet set) {
    static std::mutex mutex;
    static std::map<std::pair<std::int64_t, kernels::InstructionSet>, std::unique_ptr<const Codec>> made;
    const std::scoped_lock lock(mutex);
    auto& codec = made[{kept, set}];
    if (!codec) codec = make_top_k_codec(kept, set);
    return *codec;
}

}  // namespace

const std::vector<const Codec*>& all_codecs(kernels::InstructionSet set) {
    using kernels::InstructionSet;
    static const std::array<Codecs, 3> codecs{Codecs(InstructionSet::baseline), Codecs(InstructionSet::avx2),
                                              Codecs(InstructionSet::avx512)};
    return codecs.at(static_cast<std::size_t>(set)).all;
}

const Codec& codec_from_name(std::string_view name, kernels::InstructionSet set) {
    const auto& codecs = all_codecs(set);
    if (name == "top_k") return *codecs.back();
    const auto found = std::ranges::find(codecs, name, &Codec::name);
    if (found != codecs.end()) return **found;
    if (const std::int64_t kept = kept_by(name); kept > 0) return top_k_codec(kept, set);
    std::vector<std::string_view> names;
    for (const Codec* known : codecs) names.push_back(known->name());
    throw UserError(fmt::format("there is no codec \"{}\"; choose one of {}", name, fmt::join(names, ", ")));
}

const Codec& mean_codec(const Codec& contribution) {
    switch (contribution.id()) {
        case CodecId::int4:
        case CodecId::e3m0:
        case CodecId::sign:
        case CodecId::top_k:
            return codec_from_name("int8", contribution.instruction_set());
        default:
            return contribution;
    }
}

bool is_gathered(const Codec& codec) {
    return codec.id() == CodecId::sign || codec.id() == CodecId::top_k;
}

bool needs_error_feedback(const Codec& codec) {
    return is_gathered(codec);
}

}  // namespace atl
