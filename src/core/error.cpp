#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace atl {

UserError::UserError(std::string problem) : UserError(std::vector{std::move(problem)}) {}

UserError::UserError(std::vector<std::string> problems)
    : std::runtime_error(fmt::format("{}", fmt::join(problems, "\n"))), problems_(std::move(problems)) {}

}  // namespace atl
