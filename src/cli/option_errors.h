// What is wrong with a command line: all of it in one report, with the option that was most likely meant.
//
// CLI11 stops at the first fault, and only says of a name that it didn't expect it.
#pragma once

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace atl::cli {

// program: as parse() left it when it threw this.
UserError explain(CLI::App& program, const CLI::ParseError& error);

}  // namespace atl::cli
