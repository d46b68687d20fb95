// Small real runs: `atoll prepare` and `atoll run` as processes on a corpus made here, and what they left behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/child_process.h"
#include "support/temporary_directory.h"

namespace atl::test {

struct RunOutcome {
    ExitStatus status;
    nlohmann::json summary;
    std::string log;  // what was printed

    std::string hash() const { return summary.value("parameters_blake2b", std::string()); }
};

class TrainingRuns {
  public:
    TrainingRuns();  // a corpus of 64 documents, about 60 kB

    // A config of these sites, one rank and one thread each, 12 steps in rounds of 4 unless `changes` ("table.key" →
    // TOML value) say otherwise.
    std::filesystem::path write_config(const std::vector<std::string>& sites,
                                       const std::map<std::string, std::string>& changes) const;

    // Starts `atoll run` in the run directory of that name; its output goes to NAME.out.
    ChildProcess start(const std::string& run, const std::filesystem::path& config,
                       const std::vector<std::string>& arguments = {}) const;
    // On a network of its own: only a loopback device, and that shaped to this rate of tc's.
    ChildProcess start_on_shaped_loopback(const std::string& rate, const std::string& run,
                                          const std::filesystem::path& config,
                                          const std::vector<std::string>& arguments = {}) const;
    // Waits for its end and reads what it left.
    RunOutcome finish(const std::string& run, ChildProcess& process) const;
    RunOutcome run(const std::string& run, const std::filesystem::path& config,
                   const std::vector<std::string>& arguments = {}) const;

    std::filesystem::path directory(const std::string& run) const { return root_.path() / run; }
    std::string output(const std::string& run) const;
    // Waits until the run's output holds this text; false if it doesn't come.
    bool wait_for_text(const std::string& run, const std::string& text) const;
    // train_loss by step of one site; a step that stands twice counts with its last value.
    std::map<std::int64_t, double> losses(const std::string& run, const std::string& site) const;
    void expect_same_losses(const std::string& one, const std::string& other, const std::string& site) const;
    // The step each round ended at, of one site.
    std::map<std::int64_t, std::int64_t> round_ends(const std::string& run, const std::string& site) const;
    // Of what the rounds' lines of one site say under that key.
    std::int64_t round_sums(const std::string& run, const std::string& site, const std::string& key) const;
    // A verb of `atoll`, to its end.
    ExitStatus call(const std::vector<std::string>& arguments, const std::string& output_name) const;

  private:
    TemporaryDirectory root_;
};

// A port of 127.0.0.1 that was free a moment ago: none of those that the system gives away by itself, and another one in
// each process, so that it stays free until the test uses it.
std::uint16_t free_port();

// Processes of the run whose command line holds all these words.
std::vector<pid_t> find_processes(const std::vector<std::string>& words);

}  // namespace atl::test
