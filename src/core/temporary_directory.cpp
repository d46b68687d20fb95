#include "core/temporary_directory.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/error.h"

namespace atl {
namespace {

// Of names like atoll-PURPOSE-NAMESPACE-PID-a1B2c3, up to the PID.
std::string shared_prefix(std::string_view purpose) {
    struct stat pid_namespace {};
    ::stat("/proc/self/ns/pid", &pid_namespace);
    return fmt::format("atoll-{}-{}-", purpose, pid_namespace.st_ino);
}

bool is_running(std::string_view pid) {
    int number = 0;
    const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), number);
    if (error != std::errc() || *end != '-') return true;  // nobody's that is known here
    return std::filesystem::exists(fmt::format("/proc/{}", number));
}

void remove_abandoned(const std::filesystem::path& parent, const std::string& prefix) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
        const std::string name = entry.path().filename();
        if (name.starts_with(prefix) && !is_running(std::string_view(name).substr(prefix.size())))
            std::filesystem::remove_all(entry.path(), ignored);
    }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(std::string_view purpose) {
    const auto parent = std::filesystem::temp_directory_path();
    const std::string prefix = shared_prefix(purpose);
    remove_abandoned(parent, prefix);
    // mkdtemp replaces the six letters.
    std::string name = (parent / fmt::format("{}{}-XXXXXX", prefix, ::getpid())).string();
    if (::mkdtemp(name.data()) == nullptr)
        throw StorageError(fmt::format("can't make a directory like {}: {}", name, std::strerror(errno)));
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace atl
