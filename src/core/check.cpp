#include "core/check.h"

namespace atl::detail {

void fail_check(std::string_view condition, std::string message, std::source_location where) {
    throw CheckError(fmt::format("{}:{}: check failed: {}{}{}", where.file_name(), where.line(), condition,
                                 message.empty() ? "" : ": ", message));
}

}  // namespace atl::detail
