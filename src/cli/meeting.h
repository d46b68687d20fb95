// Meeting: processes on one or several machines come together for a benchmark, exchange short texts and agree on
// one clock. The host listens, the guests dial it.
//
// Every call is made by all members in the same order. The common clock is the host's; a guest's error is at most
// half of the fastest of eight round trips. Threads: one. Errors: CommError when a member goes or does not come
// within the patience. Cost: one frame per guest and call, plus a thread for the transport.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/site/transport.h"

namespace atl::cli {

class Meeting {
  public:
    // `address` is where the host listens (port 0: any free one, see address()) and what guests dial.
    // `place` 0 is the host. A guest learns the number of members when the host begins.
    static Meeting host(const std::string& address, int members, Milliseconds patience);
    static Meeting guest(const std::string& address, int place, Milliseconds patience);
    Meeting(Meeting&&) noexcept = default;

    int place() const { return place_; }
    int members() const { return members_; }
    std::string address() const { return transport_->address(); }

    // The host gets everybody's text by place, the others get nothing.
    std::vector<std::string> gather(const std::string& mine);
    // Everybody gets the host's text; what guests pass does not matter.
    std::string announce(const std::string& text);
    // Everybody gets everybody's text by place.
    std::vector<std::string> gather_all(const std::string& mine);

    // A moment that all members can wait for: `delay` after the last one has called, and far enough ahead for
    // everybody to hear of it. By this process's clock.
    TimePoint agree_on_moment(Milliseconds delay);

  private:
    Meeting(int place, int members, Milliseconds patience, std::unique_ptr<SiteTransport> transport);
    void begin();
    void synchronise();
    void send(int to, std::uint8_t leg, const std::string& text);
    std::string receive(int from);
    Frame next_frame(const std::string& waiting_for);

    int place_;
    int members_;
    Milliseconds patience_;
    std::unique_ptr<SiteTransport> transport_;
    SystemClock clock_;
    std::chrono::nanoseconds ahead_{0};       // the host's clock less this one's
    std::chrono::nanoseconds round_trip_{0};  // guests: the fastest
    std::chrono::nanoseconds longest_round_trip_{0};
    std::map<int, std::vector<std::string>> waiting_;  // texts by sender that came before they were asked for
};

}  // namespace atl::cli
