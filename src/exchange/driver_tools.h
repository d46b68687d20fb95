// The encoder and decoder of the codec that the run's plan names. Part of the driver; not for others.
#pragma once

#include "exchange/driver.h"

namespace atl {

struct SiteDriver::Tools {
    Tools(const Codec& agreed, bool zstd) : codec(agreed), encoder(agreed, zstd), decoder(agreed) {}

    const Codec& codec;
    PacketEncoder encoder;
    PacketDecoder decoder;
};

}  // namespace atl
