#include "config/wire_codec.h"

namespace atl {

WireCodec wire_codec(const ExchangeConfig& exchange) {
    return {exchange.codec, exchange.codec == "sign"};
}

}  // namespace atl
