// SiteTransport over plain TCP: one connection per pair of sites, or several where one can't fill the path. Not
// encrypted. A killed peer is seen through its closed socket, a cut link through missing signs of life. What carries
// streams of its own between two sites can take a connection's place once both know each other (gloo_transport.h).
//
// Threads: one for listening and dialling, two per connection, so that a body is received, hashed and handed on where
// it lies in the cache; see transport.h for the rest. With several connections, packets and pieces of state may
// overtake one another; everything else keeps its order among its own kind. Destruction says goodbye and waits at most
// 200 ms for it to leave. Memory: bodies lie in buffers that are used again (core/buffer_pool.h).
#pragma once

#include <functional>
#include <memory>

#include "comm/site/tcp_stream.h"

namespace atl {

struct TcpOptions {
    std::string bind = "127.0.0.1:0";  // "host:port"; port 0: any free one, see address(); "": only dials
    std::string public_host;           // what others dial instead of the bound host, if not empty
    std::int32_t connections = 1;      // per peer; the dialling side's count
    bool shares_memory = true;         // with sites of this host, for bodies (shared_slots.h)
    Milliseconds heartbeat{250};       // a sign of life when nothing else was written for so long
    Milliseconds silence{3000};  // no sign of life for so long, three retransmissions: the connection is lost
};

// A new connection between two sites, and what frames are to go over instead; nothing if that could not be had.
struct OpenConnection {
    std::shared_ptr<TcpStream> stream;  // shared: what takes its place may need it on
    SiteId self;
    SiteId peer;
};
using ReplaceStream = std::function<std::shared_ptr<FrameStream>(const OpenConnection& connection)>;

// Throws UserError if the address can't be bound.
std::unique_ptr<SiteTransport> make_tcp_transport(TransportOptions options, TcpOptions tcp,
                                                  ReplaceStream replace = {});

}  // namespace atl
