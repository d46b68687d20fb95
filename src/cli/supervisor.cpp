#include "cli/supervisor.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/clock.h"

namespace atl {
namespace {

bool is_answer(const ExitStatus& status) {
    return status.signal == 0 && status.code <= 2;
}

class Group {
  public:
    Group(SupervisedGroup group, const SupervisorOptions& options, const Log& log)
        : group_(std::move(group)), options_(options), log_(log) {
        start();
    }

    const SupervisedGroup& group() const { return group_; }
    std::optional<int> exit_code() const { return exit_code_; }

    void look(TimePoint now) {
        if (exit_code_) return;
        if (children_.empty()) {
            if (now >= restart_at_) start();
            return;
        }
        bool all_ended = true;
        std::optional<std::size_t> failed;
        for (std::size_t i = 0; i < children_.size(); ++i) {
            const auto status = children_[i].poll();
            if (!status) {
                all_ended = false;
            } else if (!status->ok() && (!failed || !is_answer(*status))) {
                failed = i;  // an accident explains the answers of its neighbours, not the other way round
            }
        }
        if (failed) return ended_badly(*failed, *children_[*failed].poll(), now);
        if (all_ended) exit_code_ = 0;
    }

    void send_signal(int signal) {
        for (auto& child : children_) child.send_signal(signal);
        if (children_.empty() && !exit_code_) exit_code_ = 1;  // it was waiting for its restart
    }

    // The run is over without it.
    void abandon() {
        if (exit_code_) return;
        log_.warning("[run] the run has ended without {}", group_.name);
        children_.clear();
        exit_code_ = 0;
    }
    bool is_down() const { return children_.empty(); }

    void stop() {
        send_signal(SIGTERM);
        for (auto& child : children_) child.wait_for(options_.patience);
        children_.clear();  // kills what is left
    }

  private:
    void start() {
        for (const auto& process : group_.processes(starts_)) children_.emplace_back(process);
        ++starts_;
    }

    void ended_badly(std::size_t process, const ExitStatus& status, TimePoint now) {
        const auto what =
            fmt::format("{} {} ended with {}", group_.name, group_.process_name(process), to_string(status));
        if (is_answer(status)) {
            // The other ranks end by themselves once their gateway is gone; they may hold the better reason.
            stop();
            exit_code_ = status.code;
            return;
        }
        children_.clear();
        if (starts_ > group_.restarts) {
            log_.error("[run] {}; it has been restarted {} times, which is the limit", what, starts_ - 1);
            exit_code_ = 1;
            return;
        }
        const auto pause =
            std::min(options_.longest_pause, options_.first_pause * (1 << std::min(starts_ - 1, 10)));
        restart_at_ = now + pause;
        log_.warning("[run] {}; restart {} of {} in {} ms", what, starts_, group_.restarts, pause.count());
    }

    SupervisedGroup group_;
    SupervisorOptions options_;
    const Log& log_;
    std::vector<ChildProcess> children_;
    int starts_ = 0;
    TimePoint restart_at_;
    std::optional<int> exit_code_;
};

// The signals that wake the supervisor are blocked and fetched one by one: no handler, no race.
class SignalQueue {
  public:
    SignalQueue() {
        ::sigemptyset(&signals_);
        for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) ::sigaddset(&signals_, signal);
        // A terminal that goes away interrupts as well, but not what was started to outlive it (nohup).
        struct sigaction hangup {};
        ::sigaction(SIGHUP, nullptr, &hangup);
        if (hangup.sa_handler != SIG_IGN) ::sigaddset(&signals_, SIGHUP);
        ::sigprocmask(SIG_BLOCK, &signals_, &before_);
    }
    ~SignalQueue() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
    SignalQueue(const SignalQueue&) = delete;
    SignalQueue& operator=(const SignalQueue&) = delete;

    int wait(Milliseconds duration) {  // -1 when none came
        const timespec timeout{duration.count() / 1000, (duration.count() % 1000) * 1'000'000};
        return ::sigtimedwait(&signals_, nullptr, &timeout);
    }

  private:
    sigset_t signals_;
    sigset_t before_;
};

}  // namespace

int supervise(std::vector<SupervisedGroup> groups, const SupervisorOptions& options, const Log& log) {
    SignalQueue signals;
    SystemClock clock;
    std::vector<Group> running;
    running.reserve(groups.size());
    for (auto& group : groups) running.emplace_back(std::move(group), options, log);

    bool interrupted = false;
    std::optional<TimePoint> over_since;
    const auto all_ended = [&] {
        return std::ranges::all_of(running, [](const Group& group) {
            return !group.group().essential || group.exit_code().has_value();
        });
    };
    while (!all_ended()) {
        const int signal = signals.wait(Milliseconds(100));
        if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
            if (interrupted) {
                log.warning("[run] interrupted again: stopping everything now");
                break;
            }
            interrupted = true;
            log.info("[run] interrupted: ending at the next step, with a checkpoint (again: stop now)");
            for (auto& group : running)
                if (group.group().gets_interrupt) group.send_signal(SIGTERM);
        }
        for (auto& group : running) group.look(clock.now());

        const auto wrong_input =
            std::ranges::find_if(running, [](const Group& group) { return group.exit_code() == 2; });
        if (wrong_input != running.end()) {
            log.error("[run] {} can't work with what it was given: stopping the run",
                      wrong_input->group().name);
            break;
        }
        const auto leader = std::ranges::find_if(
            running, [](const Group& group) { return group.group().leads && group.exit_code().has_value(); });
        if (leader == running.end()) continue;
        if (!over_since) {
            over_since = clock.now();
            // Who was in the run knows that it is over; who never was would wait for a leader that does not come.
            if (leader->exit_code() != 0)
                for (auto& group : running)
                    if (&group != &*leader) group.send_signal(SIGTERM);
        }
        for (auto& group : running)
            if (group.is_down() || clock.now() - *over_since > options.patience) group.abandon();
    }

    int code = 0;
    for (auto& group : running)
        if (group.group().essential || (group.group().leads && group.exit_code()))
            code = std::max(code, group.exit_code().value_or(1));
    for (auto& group : running) group.stop();
    return code;
}

}  // namespace atl
