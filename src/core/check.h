// ATOLL_CHECK: our own mistakes. Always on; a failed check throws CheckError with the place, the condition
// and both operands. Not for what users, peers or disks can do (core/error.h).
//
//   ATOLL_CHECK(index < size(), "slot {} of {}", index, size());
//   ATOLL_CHECK_EQ(sent, received);
//   ATOLL_CHECK_EQ(sent, received, "fragment {}", fragment);
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace atl {

class CheckError : public std::logic_error {
    using std::logic_error::logic_error;
};

namespace detail {

[[noreturn]] void fail_check(std::string_view condition, std::string message, std::source_location where);

template <class T>
std::string operand(const T& value) {
    if constexpr (fmt::is_formattable<T>::value) {
        return fmt::format("{}", value);
    } else {
        return "?";
    }
}

inline std::string describe() {
    return {};
}
template <class... Args>
std::string describe(fmt::format_string<Args...> format, Args&&... args) {
    return fmt::format(format, std::forward<Args>(args)...);
}

}  // namespace detail
}  // namespace atl

#define ATOLL_CHECK(condition, ...)                                                     \
    do {                                                                                \
        if (!(condition)) [[unlikely]]                                                  \
            ::atl::detail::fail_check(#condition, ::atl::detail::describe(__VA_ARGS__), \
                                      std::source_location::current());                 \
    } while (false)

#define ATOLL_CHECK_COMPARE_(left, comparison, right, ...)                               \
    do {                                                                                 \
        const auto& check_left = (left);                                                 \
        const auto& check_right = (right);                                               \
        if (!(check_left comparison check_right)) [[unlikely]]                           \
            ::atl::detail::fail_check(#left " " #comparison " " #right,                  \
                                      ::atl::detail::operand(check_left) + " against " + \
                                          ::atl::detail::operand(check_right) + " " +    \
                                          ::atl::detail::describe(__VA_ARGS__),          \
                                      std::source_location::current());                  \
    } while (false)

#define ATOLL_CHECK_EQ(left, right, ...) ATOLL_CHECK_COMPARE_(left, ==, right, __VA_ARGS__)
#define ATOLL_CHECK_NE(left, right, ...) ATOLL_CHECK_COMPARE_(left, !=, right, __VA_ARGS__)
#define ATOLL_CHECK_LT(left, right, ...) ATOLL_CHECK_COMPARE_(left, <, right, __VA_ARGS__)
#define ATOLL_CHECK_LE(left, right, ...) ATOLL_CHECK_COMPARE_(left, <=, right, __VA_ARGS__)
