#include "config/wire_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atl {

namespace {

constexpr double kTopKTile = 4096;  // of so many values top_k keeps a number

}  // namespace

WireCodec wire_codec(const ExchangeConfig& exchange) {
    if (exchange.codec == "top_k") {
        const double kept = std::clamp(std::round(exchange.top_k_fraction * kTopKTile), 1.0, kTopKTile);
        return {fmt::format("top_k_{:.0f}", kept), true};
    }
    return {exchange.codec, exchange.codec == "sign"};
}

}  // namespace atl
