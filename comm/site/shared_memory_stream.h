// Frames between two processes of one host: heads over their connection, bodies through memory that both see
// (shared_slots.h); internal to this folder.
//
// Threads and errors: as FrameStream says.
#pragma once

#include <memory>

#include "comm/site/tcp_stream.h"

namespace atl {

// Both sides call it on the two ends of a connection. `connection` itself if either can't see the other's memory, after
// all; nothing if the other side does not answer.
std::shared_ptr<FrameStream> make_shared_memory_stream(const std::shared_ptr<TcpStream>& connection);

}  // namespace atl
