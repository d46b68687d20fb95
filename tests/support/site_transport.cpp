#include "support/site_transport.h"

#include "core/clock.h"

namespace atl::test {

TransportOptions transport_options(int site, std::uint64_t incarnation) {
    TransportOptions options;
    options.self = SiteId(site);
    options.incarnation = Incarnation(incarnation);
    options.run_id = "test";
    return options;
}

Frame packet_frame(int to, std::string_view text, std::int32_t chunk) {
    Frame frame;
    frame.kind = FrameKind::packet;
    frame.to = SiteId(to);
    frame.round = Round(7);
    frame.fragment = FragmentId(2);
    frame.attempt = Attempt(3);
    frame.chunk = chunk;
    frame.leg = 1;
    frame.prefix = {std::byte{1}, std::byte{2}};
    const auto bytes = std::as_bytes(std::span(text));
    frame.body = Payload::own({bytes.begin(), bytes.end()});
    return frame;
}

std::string text_of(const Frame& frame) {
    const auto bytes = frame.body.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<TransportEvent> poll_until(SiteTransport& transport,
                                         const std::function<bool(const TransportEvent&)>& wanted) {
    const SystemClock clock;
    const Deadline deadline = clock.after(Milliseconds(10'000));
    while (auto event = transport.poll(deadline)) {
        if (wanted(*event)) return event;
    }
    return {};
}

bool wait_for(SiteTransport& transport, PeerEvent::Kind kind) {
    return poll_until(transport,
                      [&](const TransportEvent& event) {
                          const auto* peer = std::get_if<PeerEvent>(&event);
                          return peer != nullptr && peer->kind == kind;
                      })
        .has_value();
}

std::optional<Frame> next_frame(SiteTransport& transport) {
    auto event = poll_until(transport,
                            [](const TransportEvent& event) { return std::holds_alternative<Frame>(event); });
    if (!event) return {};
    return std::get<Frame>(std::move(*event));
}

}  // namespace atl::test
