// Apart from tcp_stream.cpp, because the kernel's tcp_info and the C library's have one name.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <limits>

#include "comm/site/tcp_stream.h"

namespace atl {

TcpProgress tcp_progress(int descriptor) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
    return {1e-6 * static_cast<double>(info.tcpi_busy_time), static_cast<double>(info.tcpi_bytes_acked)};
}

double TcpStream::round_trip_seconds() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    const bool known = info.tcpi_min_rtt != std::numeric_limits<std::uint32_t>::max();
    return known ? 1e-6 * info.tcpi_min_rtt : 0;
}

}  // namespace atl
