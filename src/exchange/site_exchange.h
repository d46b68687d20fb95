// SiteExchange: a driver on its own thread, and the worker's side of it. The worker trains and applies; meanwhile
// packets travel, others are served and the coordinator hears from this site.
//
// The worker's loop: take the next order, do it, tell the event that rounds/site_events.h names for it; between
// inner steps look with `next_order(now)` whether the work was dropped. A Δ is handed over with `contribute`; a mean
// comes with ApplyCommit and is read before CommitApplied.
//
// Threads: all calls from the worker's one thread. Errors: what goes wrong on the exchange's thread is thrown by the
// next call here. Destruction ends the thread; the transport then says goodbye when it is destroyed.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "exchange/driver.h"

namespace atl {

struct FetchedState {
    std::optional<StateVersion> version;  // nothing: `problem` says why
    std::string problem;
};

class SiteExchange {
  public:
    // Transport, control link, clock and what the log writes to outlive it. No other thread may use the first two.
    SiteExchange(ExchangeOptions options, SiteTransport& transport, ControlLink& control, const Clock& clock,
                 Log log);
    ~SiteExchange();

    // The next order, waiting for it until the deadline.
    std::optional<WorkerOrder> next_order(Deadline deadline);
    void tell(SiteEvent event);
    void contribute(Contribution contribution);
    // Buffers for Δ of `elements`, used again once no packet is a view of them: no page faults, no zeroing.
    std::shared_ptr<std::vector<float>> buffer(std::int64_t elements);

    // Joiners read the state while it is published; withdraw it before changing it.
    void publish_state(const StateVersion& version, std::vector<std::span<const float>> parts);
    void withdraw_state();
    // Fills `parts` from the donors; returns when it is done or the deadline has passed. Calls `meanwhile` now and then.
    FetchedState fetch_state(StateKind kind, std::vector<SiteId> donors, std::vector<std::span<float>> parts,
                             Deadline deadline, const std::function<void()>& meanwhile = {});

    RoundTraffic last_traffic() const;

  private:
    using Message = std::variant<SiteEvent, Contribution, FetchRequest>;

    void run(const std::stop_token& stop);
    bool turn();
    void post(Message message);
    void throw_if_failed() const;

    const Clock& clock_;
    SiteTransport& transport_;
    SiteDriver driver_;  // of thread_, but for published_state()
    std::vector<std::shared_ptr<std::vector<float>>>
        buffers_;  // shared with the packets that are views of them

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<Message> inbox_;
    std::deque<WorkerOrder> orders_;
    RoundTraffic traffic_;
    std::exception_ptr failure_;
    std::jthread thread_;  // last: joined first
};

}  // namespace atl
