// The checker's part about one rank's program: is it well formed, and do its reads and writes make sense? See
// checker.h for the rules.
#pragma once

#include <string>
#include <vector>

#include "program/program.h"

namespace atl {

// Ids, names, signatures, attributes, views. While this finds a problem, nothing else can be asked.
std::vector<std::string> check_structure(const Program& program);
// Every op once, write before read, in-place work, the order of accumulation.
std::vector<std::string> check_values(const Program& program);

}  // namespace atl
