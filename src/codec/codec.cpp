#include "codec/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "codec/block_codecs.h"
#include "codec/dense_codecs.h"
#include "core/error.h"

namespace atl {

namespace {

// In the order of their numbers.
std::vector<const Codec*> make_codecs(kernels::InstructionSet set) {
    std::vector<const Codec*> codecs;
    for (auto make : {make_dense_codecs, make_block_codecs}) {
        for (auto& each : make(set)) codecs.push_back(each.release());  // for as long as the program lives
    }
    return codecs;
}

}  // namespace

const std::vector<const Codec*>& all_codecs(kernels::InstructionSet set) {
    using kernels::InstructionSet;
    static const std::array codecs{make_codecs(InstructionSet::baseline), make_codecs(InstructionSet::avx2),
                                   make_codecs(InstructionSet::avx512)};
    return codecs.at(static_cast<std::size_t>(set));
}

const Codec& codec_from_name(std::string_view name, kernels::InstructionSet set) {
    const auto& codecs = all_codecs(set);
    const auto found = std::ranges::find(codecs, name, &Codec::name);
    if (found != codecs.end()) return **found;
    std::vector<std::string_view> names;
    for (const Codec* known : codecs) names.push_back(known->name());
    throw UserError(fmt::format("there is no codec \"{}\"; choose one of {}", name, fmt::join(names, ", ")));
}

const Codec& mean_codec(const Codec& contribution) {
    if (contribution.id() <= CodecId::int8) return contribution;
    return codec_from_name("int8", contribution.instruction_set());
}

bool is_gathered(const Codec& codec) {
    return codec.id() == CodecId::sign || codec.id() == CodecId::top_k;
}

bool needs_error_feedback(const Codec& codec) {
    return is_gathered(codec);
}

}  // namespace atl
