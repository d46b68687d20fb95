// The log of one process: levelled lines "time level [area] message" to standard error and, once a run
// directory is known, to a file. A value passed to whoever logs; there is no global logger.
//
// Threads: every call from any thread. Errors: a line that can't be written is dropped.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace atl {

enum class LogLevel { debug, info, warning, error };

class Log {
  public:
    // `name` stands in each line (a site or "coordinator"); empty for the command line itself.
    explicit Log(std::string name, LogLevel console_level = LogLevel::info);
    // Lines also go to `file` (appended), whatever the console's level.
    void also_to(const std::filesystem::path& file);

    template <class... Args>
    void debug(fmt::format_string<Args...> format, Args&&... args) const {
        write(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
    }
    template <class... Args>
    void info(fmt::format_string<Args...> format, Args&&... args) const {
        write(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
    }
    template <class... Args>
    void warning(fmt::format_string<Args...> format, Args&&... args) const {
        write(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
    }
    template <class... Args>
    void error(fmt::format_string<Args...> format, Args&&... args) const {
        write(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
    }
    void write(LogLevel level, std::string_view message) const;

  private:
    struct Sinks;
    std::shared_ptr<Sinks> sinks_;  // shared by copies of one log
};

}  // namespace atl
