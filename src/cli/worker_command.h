// Verbs that need libtorch hand their work to `atoll-worker`, which lies beside `atoll`.
#pragma once

#include <string>
#include <vector>

namespace atl::cli {

// Runs atoll-worker with these arguments on the caller's terminal and returns its exit code.
int run_worker(const std::vector<std::string>& arguments);

}  // namespace atl::cli
