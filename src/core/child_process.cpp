#include "core/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>

#include <cstring>
#include <utility>

#include "core/error.h"

namespace atl {
namespace {

// What the child needs after fork, made before it: between fork and exec nothing may allocate.
struct Prepared {
    explicit Prepared(const ChildOptions& options) : die_with_parent(options.die_with_parent) {
        for (const auto& word : options.command) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        for (char** entry = environ; *entry != nullptr; ++entry) {
            const std::string text = *entry;
            if (!options.environment.contains(text.substr(0, text.find('=')))) strings.push_back(text);
        }
        for (const auto& [key, value] : options.environment) strings.push_back(key + "=" + value);
        for (auto& text : strings) environment.push_back(text.data());
        environment.push_back(nullptr);
        if (options.output) output = options.output->string();
        CPU_ZERO(&processors);
        for (const int processor : options.processors) CPU_SET(processor, &processors);
        pinned = !options.processors.empty();
    }

    std::vector<char*> arguments;
    std::vector<std::string> strings;
    std::vector<char*> environment;
    std::string output;
    cpu_set_t processors;
    bool pinned;
    bool die_with_parent;
};

[[noreturn]] void run_child(const Prepared& prepared, pid_t parent, int report) {
    if (prepared.die_with_parent) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);  // the parent died before the request above
    }
    ::setpgid(0, 0);  // an interrupt typed at the terminal reaches the parent alone, which decides
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (prepared.pinned) ::sched_setaffinity(0, sizeof(prepared.processors), &prepared.processors);
    if (!prepared.output.empty()) {
        const int file = ::open(prepared.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (file >= 0) {
            ::dup2(file, STDOUT_FILENO);
            ::dup2(file, STDERR_FILENO);
        }
    }
    ::execvpe(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof(error));
    ::_exit(127);
}

ExitStatus decode(int status) {
    if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
}

}  // namespace

std::string to_string(const ExitStatus& status) {
    if (status.signal != 0) return fmt::format("signal {} ({})", status.signal, ::strsignal(status.signal));
    return fmt::format("exit code {}", status.code);
}

ChildProcess::ChildProcess(const ChildOptions& options) {
    const Prepared prepared(options);
    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) throw StorageError("[process] can't open a pipe");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) run_child(prepared, parent, report[1]);
    ::close(report[1]);
    int error = pid_ < 0 ? errno : 0;
    if (pid_ > 0 && ::read(report[0], &error, sizeof(error)) <= 0) error = 0;  // closed by exec: it runs
    ::close(report[0]);
    if (error == 0) return;
    kill_and_reap();
    throw StorageError(
        fmt::format("[process] can't start {}: {}", options.command.front(), std::strerror(error)));
}

ChildProcess::~ChildProcess() {
    kill_and_reap();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
    if (this == &other) return *this;
    kill_and_reap();
    pid_ = std::exchange(other.pid_, -1);
    status_ = other.status_;
    return *this;
}

std::optional<ExitStatus> ChildProcess::poll() {
    if (!status_ && pid_ > 0) {
        int status = 0;
        if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = decode(status);
    }
    return status_;
}

std::optional<ExitStatus> ChildProcess::wait_for(Milliseconds duration) {
    if (poll()) return status_;
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    if (handle >= 0) {
        pollfd ended{handle, POLLIN, 0};
        ::poll(&ended, 1, static_cast<int>(duration.count()));
        ::close(handle);
    }
    return poll();
}

void ChildProcess::send_signal(int signal) {
    if (pid_ > 0 && !poll()) ::kill(pid_, signal);
}

void ChildProcess::kill_and_reap() {
    if (pid_ <= 0 || poll()) return;
    ::kill(-pid_, SIGKILL);  // its process group: what it started goes with it
    int status = 0;
    ::waitpid(pid_, &status, 0);
    status_ = decode(status);
}

std::vector<int> allowed_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> processors;
    if (::sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
        if (CPU_ISSET(processor, &set)) processors.push_back(processor);
    return processors;
}

std::filesystem::path program_directory() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace atl
