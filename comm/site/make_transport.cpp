#include "comm/site/make_transport.h"

#include <fmt/format.h>

#include "comm/site/gloo_transport.h"
#include "comm/site/tcp_transport.h"
#include "comm/site/zmq_transport.h"
#include "core/error.h"

namespace atl {

std::unique_ptr<SiteTransport> make_network_transport(std::string_view kind, const TransportOptions& options,
                                                      const NetworkOptions& network) {
    if (kind == "zmq")
        return make_zmq_transport(options, {.bind = network.bind, .public_host = network.public_host});
    if (kind == "tcp") {
        return make_tcp_transport(
            options, {.bind = network.bind,
                      .public_host = network.public_host,
                      .connections = network.connections,
                      .shares_memory = network.shares_memory});
    }
    if (kind == "gloo")
        return make_gloo_transport(options, {.bind = network.bind, .public_host = network.public_host});
    throw UserError(fmt::format("[site transport] there is no kind \"{}\": tcp, zmq or gloo", kind));
}

}  // namespace atl
