#include "netlab/namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/child_process.h"
#include "core/error.h"

namespace atl::netlab {
namespace {

constexpr const char* kNamesDirectory = "/run/netns";  // where iproute2 keeps the names of namespaces
constexpr Milliseconds kCommandDeadline{10'000};

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

void fail(const std::string& what) {
    const int reason = errno;
    throw WorldError(
        fmt::format("[netlab] can't {}: {}; a lab needs root, network namespaces and /dev/net/tun", what,
                    std::strerror(reason)));
}

Descriptor open_file(const std::string& path, int flags) {
    Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
    if (file.number() < 0) fail("open " + path);
    return file;
}

void run_command(const std::vector<std::string>& command) {
    ChildProcess child({.command = command});
    const auto end = child.wait_for(kCommandDeadline);
    if (end && end->ok()) return;
    throw WorldError(fmt::format("[netlab] '{}' failed: {}", fmt::join(command, " "),
                                 end ? to_string(*end) : "no end after 10 s"));
}

void make_names_private() {
    if (::unshare(CLONE_NEWNS) != 0) fail("make a mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) fail("make mounts private");
    std::filesystem::create_directories(kNamesDirectory);
    if (::mount("netlab", kNamesDirectory, "tmpfs", 0, nullptr) != 0) fail("mount /run/netns");
}

Namespace::Namespace(const std::string& name) : name_(name) {
    run_command({"ip", "netns", "add", name});
    descriptor_ = open_file(fmt::format("{}/{}", kNamesDirectory, name), O_RDONLY);
    struct stat identity {};
    if (::fstat(descriptor_.number(), &identity) != 0) fail("identify namespace " + name);
    id_ = identity.st_ino;
}

VisitNamespace::VisitNamespace(const Namespace& there)
    : home_(open_file("/proc/thread-self/ns/net", O_RDONLY)) {
    if (::setns(there.descriptor().number(), CLONE_NEWNET) != 0) fail("enter a network namespace");
}

VisitNamespace::~VisitNamespace() {
    ::setns(home_.number(), CLONE_NEWNET);
}

std::string address_of_host(int host) {
    return fmt::format("10.77.{}.1", host);
}

void bring_up_device(int host, int mtu_bytes) {
    run_command({"ip", "link", "set", "lo", "up"});
    run_command({"ip", "addr", "add", address_of_host(host) + "/16", "dev", kDevice});
    run_command(
        {"ip", "link", "set", kDevice, "mtu", std::to_string(mtu_bytes), "txqueuelen", "1000", "up"});
}

void kill_processes_in(const std::vector<std::uint64_t>& ids) {
    std::error_code ignored;  // processes come and go while the list is read
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        pid_t process = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), process);
        struct stat identity {};
        if (parsed.ec != std::errc{} || ::stat((entry.path() / "ns/net").c_str(), &identity) != 0) continue;
        if (std::ranges::find(ids, identity.st_ino) != ids.end()) ::kill(process, SIGKILL);
    }
}

}  // namespace atl::netlab
