// SiteTransport over ZeroMQ and TCP: one ROUTER socket binds and dials, so a connection carries both directions
// whoever made it. A killed peer is seen through its closed socket, a cut link through heartbeats.
//
// Threads: a thread of its own holds the socket; see transport.h for the rest. Bodies leave and arrive without
// a copy. Destruction says goodbye and waits at most 200 ms for it to leave.
#pragma once

#include <memory>

#include "comm/site/transport.h"

namespace atl {

struct ZmqOptions {
    std::string bind = "127.0.0.1:0";  // "host:port"; port 0: any free one, see address(); "": only dials
    std::string public_host;           // what others dial instead of the bound host, if not empty
    Milliseconds heartbeat{250};       // ZeroMQ's own, between connected sides
    Milliseconds silence{1000};        // no sign of life for so long: the connection is lost
};

// Throws UserError if the address can't be bound.
std::unique_ptr<SiteTransport> make_zmq_transport(TransportOptions options, ZmqOptions zmq);

}  // namespace atl
