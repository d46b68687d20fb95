// Frames between two sites over a Gloo context of those two; internal to this folder.
//
// The bytes go in blocks of at most 512 KiB, for which the other side has asked ahead: a transfer never waits for a
// round trip. Threads and errors: as FrameStream says.
#pragma once

#include <memory>

#include "comm/site/tcp_transport.h"

namespace atl {

// Both sides call it on the two ends of a connection. Nothing if Gloo can't connect, or the other side does not answer,
// within the silence; nothing blocks for longer without a sign of life from the other side.
std::shared_ptr<FrameStream> make_gloo_stream(const OpenConnection& connection, Milliseconds silence);

}  // namespace atl
