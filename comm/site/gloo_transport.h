// SiteTransport over Gloo, for fixed, well-connected sites: each pair of sites has a Gloo context of its own, made anew
// when it breaks, so that losing a peer costs nobody else's connection. Not encrypted.
//
// Sites meet over TCP as tcp_transport.h says, and so have an address to dial, but Gloo connects both ways: both sides
// must be reachable. A killed peer is seen by Gloo at once, a silent one through missing signs of life.
// Threads: beside TCP's two per peer, Gloo's own, one per peer. Memory: about 8 MiB per peer beside the frames.
// Cost: a copy of every byte on each side, into and out of the blocks that Gloo carries.
#pragma once

#include <memory>

#include "comm/site/tcp_transport.h"

namespace atl {

// `tcp`: where sites meet; one connection per peer whatever it says. Throws UserError if the address can't be bound.
std::unique_ptr<SiteTransport> make_gloo_transport(TransportOptions options, TcpOptions tcp);

}  // namespace atl
