#include "comm/site/gloo_transport.h"

#include <utility>

#include "comm/site/gloo_stream.h"

namespace atl {

std::unique_ptr<SiteTransport> make_gloo_transport(TransportOptions options, TcpOptions tcp) {
    tcp.connections = 1;
    const Milliseconds silence = tcp.silence;
    return make_tcp_transport(
        std::move(options), std::move(tcp),
        [silence](const OpenConnection& connection) { return make_gloo_stream(connection, silence); });
}

}  // namespace atl
