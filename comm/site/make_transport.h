// A SiteTransport over a network, by the name of its kind.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/site/transport.h"

namespace atl {

struct NetworkOptions {
    std::string bind = "127.0.0.1:0";  // "host:port"; port 0: any free one; "": only dials
    std::string public_host;           // what others dial instead of the bound host, if not empty
    std::int32_t connections = 1;      // per peer; tcp only
    bool shares_memory = true;         // with sites of this host; tcp only
};

// `kind`: "tcp", "zmq" or "gloo" (comm/site/KIND_transport.h). Throws UserError for another one and
// if the address can't be bound.
std::unique_ptr<SiteTransport> make_network_transport(std::string_view kind, const TransportOptions& options,
                                                      const NetworkOptions& network);

}  // namespace atl
