#include "netlab/hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

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
constexpr const char* kDevice = "wan0";
constexpr Milliseconds kCommandDeadline{10'000};

[[noreturn]] void fail(const std::string& what) {
    const int reason = errno;
    throw WorldError(
        fmt::format("[netlab] can't {}: {}; a lab needs root, network namespaces and /dev/net/tun", what,
                    std::strerror(reason)));
}

void run_ip(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "ip");
    ChildProcess command({.command = arguments});
    const auto end = command.wait_for(kCommandDeadline);
    if (end && end->ok()) return;
    throw WorldError(fmt::format("[netlab] '{}' failed: {}", fmt::join(arguments, " "),
                                 end ? to_string(*end) : "no end after 10 s"));
}

// From here on this process and its children see names of namespaces that nobody else sees.
void make_names_private() {
    if (::unshare(CLONE_NEWNS) != 0) fail("make a mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) fail("make mounts private");
    std::filesystem::create_directories(kNamesDirectory);
    if (::mount("netlab", kNamesDirectory, "tmpfs", 0, nullptr) != 0) fail("mount /run/netns");
}

Descriptor open_file(const std::string& path, int flags) {
    Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
    if (file.number() < 0) fail("open " + path);
    return file;
}

// This thread is on another host for as long as the object lives.
class VisitNamespace {
  public:
    explicit VisitNamespace(const Descriptor& there)
        : home_(open_file("/proc/thread-self/ns/net", O_RDONLY)) {
        if (::setns(there.number(), CLONE_NEWNET) != 0) fail("enter a network namespace");
    }
    ~VisitNamespace() { ::setns(home_.number(), CLONE_NEWNET); }
    VisitNamespace(const VisitNamespace&) = delete;
    VisitNamespace& operator=(const VisitNamespace&) = delete;

  private:
    Descriptor home_;
};

Descriptor open_tunnel() {
    Descriptor tunnel = open_file("/dev/net/tun", O_RDWR | O_NONBLOCK);
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
    if (::ioctl(tunnel.number(), TUNSETIFF, &request) != 0) fail("make a TUN device");
    return tunnel;
}

Host make_host(const std::string& prefix, int index, int mtu_bytes) {
    const std::string name = prefix + std::to_string(index);
    const std::string address = fmt::format("10.77.{}.1", index);
    run_ip({"netns", "add", name});
    const Descriptor there = open_file(fmt::format("{}/{}", kNamesDirectory, name), O_RDONLY);
    struct stat identity {};
    if (::fstat(there.number(), &identity) != 0) fail("identify namespace " + name);
    const VisitNamespace visit(there);
    Host host{name, address, open_tunnel(), identity.st_ino};
    run_ip({"link", "set", "lo", "up"});
    run_ip({"addr", "add", address + "/16", "dev", kDevice});
    run_ip({"link", "set", kDevice, "mtu", std::to_string(mtu_bytes), "txqueuelen", "1000", "up"});
    return host;
}

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

Hosts::Hosts(const std::string& prefix, int count, int mtu_bytes) {
    make_names_private();
    for (int index = 0; index < count; ++index) hosts_.push_back(make_host(prefix, index, mtu_bytes));
}

Hosts::~Hosts() {
    std::error_code ignored;  // processes come and go while the list is read
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        pid_t process = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), process);
        struct stat identity {};
        if (parsed.ec != std::errc{} || ::stat((entry.path() / "ns/net").c_str(), &identity) != 0) continue;
        for (const Host& host : hosts_) {
            if (identity.st_ino == host.namespace_id) ::kill(process, SIGKILL);
        }
    }
}

int destination_host(std::span<const std::byte> packet, int host_count) {
    constexpr std::size_t kHeaderBytes = 20, kDestinationOffset = 16;
    if (packet.size() < kHeaderBytes || std::to_integer<int>(packet[0]) >> 4 != 4) return -1;
    const auto octet = [&](int index) { return std::to_integer<int>(packet[kDestinationOffset + index]); };
    if (octet(0) != 10 || octet(1) != 77 || octet(2) >= host_count || octet(3) != 1) return -1;
    return octet(2);
}

}  // namespace atl::netlab
