// What tests of site transports share: options, frames, and waiting for the event one wants.
#pragma once

#include <functional>
#include <string_view>

#include "comm/site/transport.h"

namespace atl::test {

TransportOptions transport_options(int site, std::uint64_t incarnation = 1);
Frame packet_frame(int to, std::string_view text, std::int32_t chunk = 0);
std::string text_of(const Frame& frame);

// Polls until `wanted` is true of an event, which it returns; nothing after ten seconds. Others are dropped.
std::optional<TransportEvent> poll_until(SiteTransport& transport,
                                         const std::function<bool(const TransportEvent&)>& wanted);
bool wait_for(SiteTransport& transport, PeerEvent::Kind kind);
std::optional<Frame> next_frame(SiteTransport& transport);

}  // namespace atl::test
