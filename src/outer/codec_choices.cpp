#include "outer/codec_choices.h"

#include "codec/codec.h"
#include "outer/outer.h"

namespace atl {
namespace {

double loss_penalty(CodecId id) {
    switch (id) {
        case CodecId::int4:
        case CodecId::e3m0:
            return 0.005;
        case CodecId::top_k:
            return 0.01;
        case CodecId::sign:
            return 0.02;
        default:
            return 0;
    }
}

// How often the elements of a model leave a site: to everybody; or to the other owners, and the own part's mean back.
double copies_sent(const Codec& codec, std::int64_t sites) {
    const auto others = static_cast<double>(sites - 1);
    if (sites <= 2 || is_gathered(codec)) return others;
    return 2 * others / static_cast<double>(sites);
}

}  // namespace

double round_bytes(std::string_view name, double elements, std::int64_t sites) {
    const Codec& codec = codec_from_name(name);
    const auto whole = static_cast<std::int64_t>(elements);
    const EncodedSizes sizes{.contribution_bytes = codec.body_bytes(whole),
                             .owned_contribution_bytes = codec.body_bytes(whole / sites),
                             .owned_mean_bytes = mean_codec(codec).body_bytes(whole / sites)};
    return static_cast<double>(
        payload_bytes_sent(is_gathered(codec) ? Combine::gather : Combine::mean, sizes, static_cast<int>(sites)));
}

std::vector<CodecChoice> codec_choices(double elements, std::int64_t sites) {
    std::vector<CodecChoice> choices;
    for (const Codec* codec : all_codecs()) {
        choices.push_back({std::string(codec->name()), round_bytes(codec->name(), elements, sites),
                           loss_penalty(codec->id())});
    }
    return choices;
}

double elements_of(double raw_bytes, std::int64_t sites, std::string_view codec) {
    const double copies = copies_sent(codec_from_name(codec), sites);
    return copies > 0 ? raw_bytes / (4 * copies) : 0;
}

}  // namespace atl
