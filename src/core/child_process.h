// A process that this one started, watches and ends.
//
// Ownership: the object owns the process; destroying it kills a child that still runs, with what that has started, and
// reaps it. Children die with their parent (parent-death signal), however that ends, and have a process group of their
// own. Threads: one thread at a time; with die_with_parent the thread that started the child must outlive it. Errors:
// StorageError when the program can't be started.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"

namespace atl {

struct ChildOptions {
    std::vector<std::string> command;  // program and arguments; searched on PATH without a slash
    std::map<std::string, std::string> environment;  // added to this process's own
    std::optional<std::filesystem::path> output;  // both streams go here, appended; else they are inherited
    std::vector<int> processors;                  // run on these only; empty = on any
    bool die_with_parent = true;
};

struct ExitStatus {
    int code = 0;    // when it ended by itself
    int signal = 0;  // when a signal ended it
    bool ok() const { return code == 0 && signal == 0; }
};
std::string to_string(const ExitStatus& status);  // "exit code 3", "signal 9 (Killed)"

class ChildProcess {
  public:
    explicit ChildProcess(const ChildOptions& options);
    ~ChildProcess();
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;

    pid_t pid() const { return pid_; }
    std::optional<ExitStatus> poll();                           // its end, once it has ended
    std::optional<ExitStatus> wait_for(Milliseconds duration);  // nothing when it still runs after that
    void send_signal(int signal);                               // nothing happens when it has ended

  private:
    void kill_and_reap();

    pid_t pid_ = -1;
    std::optional<ExitStatus> status_;
};

std::vector<int> allowed_processors();  // on which this process may run

// The folder of the running program, where its sister programs lie.
std::filesystem::path program_directory();

}  // namespace atl
