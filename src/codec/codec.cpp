#include "codec/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codec/dense_codecs.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {

const std::vector<const Codec*>& all_codecs() {
    static const std::vector<const Codec*> codecs = {&identity_codec(), &fp16_codec(), &bf16_codec(),
                                                     &int8_codec()};
    return codecs;
}

bool is_codec(std::uint8_t id) {
    return std::ranges::any_of(all_codecs(),
                               [&](const Codec* c) { return static_cast<std::uint8_t>(c->id()) == id; });
}

const Codec& codec(CodecId id) {
    const auto found = std::ranges::find(all_codecs(), id, &Codec::id);
    ATOLL_CHECK(found != all_codecs().end(), "codec {}", static_cast<int>(id));
    return **found;
}

const Codec& codec_from_name(std::string_view name) {
    const auto found = std::ranges::find(all_codecs(), name, &Codec::name);
    if (found != all_codecs().end()) return **found;
    std::vector<std::string_view> names;
    for (const Codec* known : all_codecs()) names.push_back(known->name());
    throw UserError(fmt::format("there is no codec \"{}\"; choose one of {}", name, fmt::join(names, ", ")));
}

}  // namespace atl
