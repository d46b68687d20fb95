// What both ends of the control connection agree on beside the messages. One ZeroMQ message is one frame.
#pragma once

#include <cstddef>
#include <string_view>

namespace atl {

inline constexpr std::size_t kLongestControlMessage = 16 * 1024 * 1024;  // bytes
inline constexpr std::string_view kStatusRequest = "status";  // answered with status_json of the view
inline constexpr std::string_view kSetRequest = "set\n";  // then "table.key=value" lines; FORMAT.md of rounds

}  // namespace atl
