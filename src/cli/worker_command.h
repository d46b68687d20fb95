// Verbs that need libtorch hand their work to `atoll-worker`, which lies beside `atoll`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atl::cli {

// Runs atoll-worker with these arguments on the caller's terminal and returns its exit code.
int run_worker(const std::vector<std::string>& arguments);
// The same on every rank of an island, each on processors of its own where there are enough; they meet in a directory
// made for them. The first exit code that is not 0 ends them all. With `hosts`, rank i runs in the network namespace
// <hosts><i>, and reaches the others over its device wan0, as netlab makes them.
int run_island(const std::vector<std::string>& arguments, std::int64_t ranks, std::int64_t threads,
               const std::string& hosts = "");
// A program that lies beside this one, likewise: its name, then its arguments.
int run_sister(std::vector<std::string> command);

}  // namespace atl::cli
