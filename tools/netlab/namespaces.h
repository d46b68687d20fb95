// Network namespaces with names that only this process and its children see: what any lab's hosts are made of.
//
// The names live on a private mount: two labs never meet, and whatever ends this process, SIGKILL included, takes the
// names, the devices and the links with it. Needs root. Errors: WorldError says which step failed and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atl::netlab {

// A file descriptor with an owner.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor();
    Descriptor(Descriptor&& other) noexcept;
    Descriptor& operator=(Descriptor&& other) noexcept;
    int number() const { return number_; }

  private:
    int number_;
};

inline constexpr const char* kDevice = "wan0";  // of every host: its only way out

[[noreturn]] void fail(const std::string& what);  // names errno's reason
Descriptor open_file(const std::string& path, int flags);
void run_command(const std::vector<std::string>& command);  // until its end, which must be a good one

// From here on this process and its children see names of namespaces that nobody else sees.
void make_names_private();

// `ip netns exec NAME COMMAND` runs something in it.
class Namespace {
  public:
    explicit Namespace(const std::string& name);

    const std::string& name() const { return name_; }
    const Descriptor& descriptor() const { return descriptor_; }
    std::uint64_t id() const { return id_; }

  private:
    std::string name_;
    Descriptor descriptor_;
    std::uint64_t id_ = 0;
};

// This thread is in the namespace for as long as the object lives.
class VisitNamespace {
  public:
    explicit VisitNamespace(const Namespace& there);
    ~VisitNamespace();
    VisitNamespace(const VisitNamespace&) = delete;
    VisitNamespace& operator=(const VisitNamespace&) = delete;

  private:
    Descriptor home_;
};

// Gives the device in the namespace that is being visited an address, 10.77.<host>.1/16, and sets it going.
void bring_up_device(int host, int mtu_bytes);
std::string address_of_host(int host);

// What still runs in namespaces with these ids.
void kill_processes_in(const std::vector<std::uint64_t>& ids);

}  // namespace atl::netlab
