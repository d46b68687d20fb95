// Two hosts joined by one link whose rate the kernel limits: a pair of virtual Ethernet devices, each with a token
// bucket (tbf). Unlike emulated links it takes no processor from those who compute, and it has no delay.
//
// Host i of a link called `rank` is the namespace rank<i> with the address 10.77.<i>.1/16 on the device wan0.
// The bucket holds what the link carries in a quarter of a millisecond, but at least two packets, and packets that the
// sender's kernel puts together are kept smaller than that: a link that idled must not carry the next transfer at once,
// or transfers with pauses between them look faster than those in a row. Congestion control is reno, whatever
// the machine's own.
// Needs root, iproute2, and a kernel with veth and tbf. Errors: WorldError says which step failed and why.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netlab/namespaces.h"

namespace atl::netlab {

struct ShapedLinkOptions {
    std::string prefix = "rank";
    int mtu_bytes = 1500;
    double rate_mbit_per_s = 0;  // each way; 0 = as fast as the kernel can
};

// What the bucket holds, in bytes, and the most that the kernel sends as one packet.
struct TokenBucket {
    std::int64_t burst_bytes = 0;
    std::int64_t largest_packet_bytes = 0;
    std::int64_t queue_bytes = 0;
};
TokenBucket token_bucket(double rate_mbit_per_s);

class ShapedLink {
  public:
    explicit ShapedLink(const ShapedLinkOptions& options);
    ~ShapedLink();  // kills what still runs on the hosts
    ShapedLink(const ShapedLink&) = delete;
    ShapedLink& operator=(const ShapedLink&) = delete;

    std::vector<std::string> host_names() const;

  private:
    void set_up(int host, const ShapedLinkOptions& options);

    std::vector<Namespace> hosts_;
};

}  // namespace atl::netlab
