// Starts groups of processes (an island's ranks, the coordinator), watches them to their end and starts a group
// anew when one of its processes dies.
//
// A group whose processes all exit with 0 is done. Exit codes 1 and 2 are answers (the run failed, the input is
// wrong): they are not retried, and wrong input ends the whole run. Anything else, a signal above all, is an
// accident: the group's other processes are stopped and all start again after a growing pause, at most `restarts`
// times.
//
// Interrupts (SIGINT, SIGTERM, SIGHUP): the first is passed on as SIGTERM to groups that asked for it, so that they can end
// well; the second kills everything. Threads: one; it must be the process's main thread, whose mask it changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/child_process.h"
#include "core/log.h"

namespace atl {

struct SupervisedGroup {
    std::string name;  // "site east", "coordinator"
    // The processes of the n-th start, n from 0.
    std::function<std::vector<ChildOptions>(int start)> processes;
    std::function<std::string(std::size_t process)> process_name;  // "rank 1"
    int restarts = 0;
    bool essential = true;       // the run ends when all essential groups have ended
    bool gets_interrupt = true;  // is told of an interrupt, and ends by itself
    // When it has ended, so has the run: the others, told so if it failed, end within `patience` or are stopped.
    bool leads = false;
};

struct SupervisorOptions {
    Milliseconds first_pause{500};  // before the first restart; doubles with each
    Milliseconds longest_pause{30'000};
    Milliseconds patience{10'000};  // for processes that were told to stop
};

// Returns the run's exit code: 0 when all essential groups ended with 0, else the largest of theirs. A group that was
// on its way back when the leader ended does not count.
int supervise(std::vector<SupervisedGroup> groups, const SupervisorOptions& options, const Log& log);

}  // namespace atl
