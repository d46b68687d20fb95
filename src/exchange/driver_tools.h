// Encoders and decoders of the codecs that the run's plan names. Part of the driver; not for others.
#pragma once

#include "exchange/driver.h"

namespace atl {

struct SiteDriver::Tools {
    // The codec of one leg: a sparse or narrow contribution has a wider mean.
    struct OfLeg {
        OfLeg(const Codec& agreed, bool zstd) : codec(agreed), encoder(agreed, zstd), decoder(agreed) {}

        const Codec& codec;
        PacketEncoder encoder;
        PacketDecoder decoder;
    };
    Tools(const Codec& agreed, bool zstd) : contribution(agreed, zstd), mean(mean_codec(agreed), zstd) {}
    OfLeg& of(Leg leg) { return leg == Leg::mean ? mean : contribution; }

    OfLeg contribution, mean;
};

}  // namespace atl
