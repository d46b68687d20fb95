// Lifelines: how a rank learns at once that another one is gone. Gloo forgets transfers that were half done when a
// connection broke, and its waits for them then last until their deadline; so each two ranks of a group are also
// joined by a plain connection on which nothing is ever sent but a farewell.
//
// A rank whose process ends, however it ends, closes its lifelines. One that gives up on the group says why first,
// so that the others name the cause and not the messenger; one that needs the group no more says so.
// Threads: one of its own, which calls on_departure; everything else from the owner's thread.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/island/rendezvous.h"
#include "comm/island/socket.h"

namespace atl {

struct LifelineOptions {
    std::string group;
    Rank rank;
    std::int32_t size = 1;
    std::string address;  // of this rank's machine, as the others reach it
    Milliseconds connect_timeout{30'000};
};

struct Departure {
    std::int32_t peer = 0;
    bool done = false;  // it said that it needs the group no more
    std::string why;    // what it said when it gave up; empty if it said nothing
};

class Lifelines {
  public:
    // Called from the watching thread: for each peer that is done, and once for one that is lost.
    using OnDeparture = std::function<void(const Departure&)>;

    // Joins all ranks through the rendezvous; throws CommError.
    Lifelines(const LifelineOptions& options, Rendezvous& rendezvous, OnDeparture on_departure);
    // Says "done", unless an exception is passing through.
    ~Lifelines();

    void give_up(const std::string& why);

  private:
    void join(const LifelineOptions& options, Rendezvous& rendezvous);
    void tell(const std::string& message);
    void watch();

    std::vector<Socket> peers_;  // by rank; empty for this one
    Socket stop_reader_;         // a pipe that ends the watching thread
    Socket stop_writer_;
    OnDeparture on_departure_;
    SystemClock clock_;
    std::jthread watcher_;
};

}  // namespace atl
