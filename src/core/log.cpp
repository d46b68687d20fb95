#include "core/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace atl {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
    switch (level) {
        case LogLevel::debug:
            return spdlog::level::debug;
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warning:
            return spdlog::level::warn;
        case LogLevel::error:
            break;
    }
    return spdlog::level::err;
}

}  // namespace

struct Log::Sinks {
    explicit Sinks(const std::string& name) : logger(name) {}
    spdlog::logger logger;
};

Log::Log(std::string name, LogLevel console_level) : sinks_(std::make_shared<Sinks>(name)) {
    auto console = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    console->set_level(to_spdlog(console_level));
    sinks_->logger.sinks().push_back(std::move(console));
    sinks_->logger.set_level(spdlog::level::debug);
    sinks_->logger.set_pattern(name.empty() ? "%H:%M:%S.%e %^%l%$ %v" : "%H:%M:%S.%e %^%l%$ %n %v");
    sinks_->logger.flush_on(spdlog::level::info);
}

void Log::also_to(const std::filesystem::path& file) {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %n %v");
    sinks_->logger.sinks().push_back(std::move(sink));
}

void Log::write(LogLevel level, std::string_view message) const {
    sinks_->logger.log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace atl
