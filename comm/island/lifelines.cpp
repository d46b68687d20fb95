#include "comm/island/lifelines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>

#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr Milliseconds kFarewellTimeout{200};  // to say or hear why; the wait is over anyway
constexpr const char* kDone = "done";

}  // namespace

Lifelines::Lifelines(const LifelineOptions& options, Rendezvous& rendezvous, OnDeparture on_departure)
    : peers_(static_cast<std::size_t>(options.size)), on_departure_(std::move(on_departure)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw CommError("[island] no pipe: " + system_reason());
    stop_reader_ = Socket(ends[0]);
    stop_writer_ = Socket(ends[1]);
    join(options, rendezvous);
    watcher_ = std::jthread([this] { watch(); });
}

Lifelines::~Lifelines() {
    if (std::uncaught_exceptions() == 0) tell(kDone);
    stop_writer_ = Socket();
}

void Lifelines::join(const LifelineOptions& options, Rendezvous& rendezvous) {
    const Deadline deadline = clock_.after(options.connect_timeout);
    const Socket listener = listen_on(options.address, 0);
    const auto places = rendezvous.exchange(options.group + "_lifelines",
                                            fmt::format("{} {}", local_port(listener), options.address),
                                            options.connect_timeout);
    const std::int32_t me = options.rank.value();
    for (std::int32_t peer = 0; peer < me; ++peer) {
        const std::size_t space = places[peer].find(' ');
        const AddressList addresses(places[peer].substr(space + 1),
                                    static_cast<std::uint16_t>(std::stoi(places[peer])), SOCK_STREAM);
        peers_[peer] = connect_to(addresses);
        if (!peers_[peer] || !send_message(peers_[peer], std::to_string(me), deadline, clock_)) {
            throw CommError(
                fmt::format("[island] group {}: rank {} can't reach rank {} at {}; check the ranks' "
                            "addresses and firewalls",
                            options.group, me, peer, places[peer]));
        }
    }
    for (std::int32_t come = me + 1; come < options.size;) {
        std::string hello;
        if (!wait_readable(listener, deadline, clock_)) {
            throw CommError(
                fmt::format("[island] group {}: rank {} waited {} ms for the ranks above it to connect",
                            options.group, me, options.connect_timeout.count()));
        }
        Socket peer = accept_from(listener);
        if (!peer || !receive_message(peer, hello, deadline, clock_)) continue;
        for (std::int32_t r = me + 1; r < options.size; ++r) {
            if (hello != std::to_string(r) || peers_[r]) continue;
            peers_[r] = std::move(peer);
            ++come;
            break;
        }
    }
}

void Lifelines::give_up(const std::string& why) {
    tell(why);
}

void Lifelines::tell(const std::string& message) {
    for (const Socket& peer : peers_) {
        if (peer) send_message(peer, message, clock_.after(kFarewellTimeout), clock_);
    }
}

void Lifelines::watch() {
    std::vector<pollfd> entries;
    for (const Socket& peer : peers_) entries.push_back({peer.get(), POLLIN, 0});  // poll skips negative ones
    entries.push_back({stop_reader_.get(), POLLIN, 0});
    while (true) {
        if (::poll(entries.data(), entries.size(), -1) < 0) continue;
        if (entries.back().revents != 0) return;
        for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
            if (entries[peer].revents == 0) continue;
            std::string said;
            if (!receive_message(peers_[peer], said, clock_.after(kFarewellTimeout), clock_)) said.clear();
            const bool done = said == kDone;
            on_departure_({static_cast<std::int32_t>(peer), done, done ? "" : said});
            if (!done) return;
            entries[peer].fd = -1;
        }
    }
}

}  // namespace atl
