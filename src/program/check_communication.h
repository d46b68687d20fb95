// The checker's part about what ranks say to one another: does each collective meet its like on every member of its
// group, and each send its receive? See checker.h for the rules.
#pragma once

#include <string>
#include <vector>

#include "program/program.h"

namespace atl {

// The programs have passed check_structure.
std::vector<std::string> check_communication(const std::vector<Program>& programs);

}  // namespace atl
