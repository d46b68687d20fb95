// A peer that is killed with SIGKILL, as an operating system does it: seen at once, and its successor is heard.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "comm/site/make_transport.h"
#include "comm/site/zmq_transport.h"
#include "support/site_transport.h"

namespace atl {
namespace {

using namespace test;

// A child process that is site 1 and talks to site 0. Forked before this process has threads of its own.
class ChildSite {
  public:
    explicit ChildSite(std::string kind) : kind_(std::move(kind)) {
        EXPECT_EQ(pipe(pipe_), 0);
        process_ = fork();
        if (process_ == 0) live();
    }
    ~ChildSite() { die(); }
    void tell_address(const std::string& address) const {
        EXPECT_EQ(write(pipe_[1], address.data(), address.size()), static_cast<ssize_t>(address.size()));
    }
    void send_signal(int signal) const { kill(process_, signal); }
    void die() {
        if (process_ <= 0) return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = 0;
    }

  private:
    [[noreturn]] void live() const {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it never ends by itself
        std::string address(100, '\0');
        const ssize_t length = read(pipe_[0], address.data(), address.size());
        address.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
        const auto transport = make_network_transport(kind_, transport_options(1, 77), {});
        transport->set_peers({{SiteId(0), Incarnation(), address}});
        const SystemClock clock;
        while (true) {
            transport->poll(clock.after(Milliseconds(5)));
            (void)transport->send(packet_frame(0, std::string(100'000, 'x')));
        }
    }

    std::string kind_;
    int pipe_[2] = {-1, -1};
    pid_t process_ = -1;
};

class KilledPeer : public testing::TestWithParam<std::string> {};

TEST_P(KilledPeer, sigkill_in_the_middle_of_sending_is_seen_before_silence_would_tell) {
    ChildSite child(GetParam());
    const auto transport = make_network_transport(GetParam(), transport_options(0), {});
    transport->set_peers({{SiteId(1), Incarnation(), ""}});
    child.tell_address(transport->address());
    for (int frame = 0; frame < 5; ++frame) ASSERT_TRUE(next_frame(*transport));
    const SystemClock clock;
    const TimePoint killed = clock.now();
    child.die();
    ASSERT_TRUE(wait_for(*transport, PeerEvent::Kind::lost));
    const double seen_after = seconds(clock.now() - killed);
    std::printf("a killed peer is seen after %.3f s\n", seen_after);
    EXPECT_LT(seen_after, seconds(ZmqOptions().silence));  // the shortest of all kinds
    EXPECT_EQ(transport->send(packet_frame(1, "x")), SendResult::not_connected);

    const auto successor = make_network_transport(GetParam(), transport_options(1, 78), {});
    successor->set_peers({{SiteId(0), Incarnation(), transport->address()}});
    EXPECT_TRUE(wait_for(*transport, PeerEvent::Kind::connected));
}

TEST_P(KilledPeer, a_stopped_process_is_lost_by_its_silence_and_heard_again_when_it_goes_on) {
    ChildSite child(GetParam());
    const auto transport = make_network_transport(GetParam(), transport_options(0), {});
    transport->set_peers({{SiteId(1), Incarnation(), ""}});
    child.tell_address(transport->address());
    ASSERT_TRUE(next_frame(*transport));
    child.send_signal(SIGSTOP);
    ASSERT_TRUE(wait_for(*transport, PeerEvent::Kind::lost));
    child.send_signal(SIGCONT);
    EXPECT_TRUE(wait_for(*transport, PeerEvent::Kind::connected));
    EXPECT_TRUE(next_frame(*transport));
}

INSTANTIATE_TEST_SUITE_P(Kinds, KilledPeer, testing::Values("zmq", "tcp", "gloo"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace atl
