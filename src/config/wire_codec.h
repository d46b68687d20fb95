// The codec of contributions as a run's plan names it, from [exchange].
//
// The coordinator holds no tensors and knows no codecs, yet plans by what they are. `src/codec` has the codecs
// themselves; a test keeps the two in step.
#pragma once

#include <string>

#include "config/run_config.h"

namespace atl {

struct WireCodec {
    std::string name;       // for codec_from_name
    bool gathered = false;  // so small that every site gets every contribution, however many there are
};
WireCodec wire_codec(const ExchangeConfig& exchange);

}  // namespace atl
