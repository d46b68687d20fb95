#include "support/training_run.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/file_system.h"
#include "core/random.h"

namespace atl::test {
namespace {

constexpr Milliseconds kPatience{240'000};

std::string program() {
    return std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll";
}

// Words in a random order with a little grammar: enough for a loss that falls.
std::string document(std::uint64_t index) {
    static const std::vector<std::string> words{"the ",  "reef ",  "island ", "of ",    "coral ",
                                                "and ",  "water ", "stands ", "under ", "a ",
                                                "slow ", "wind\n", "tide ",   "moves "};
    const RandomStream random(11, index);
    std::string text;
    for (std::uint64_t i = 0; i < 160; ++i) text += words[random.below(i, words.size())];
    return text;
}

std::string read_if_there(const std::filesystem::path& path) {
    const auto files = make_system_file_system();
    return files->exists(path) ? files->read_text(path) : "";
}

}  // namespace

TrainingRuns::TrainingRuns() {
    const auto texts = root_.path() / "texts";
    std::filesystem::create_directories(texts);
    for (std::uint64_t i = 0; i < 64; ++i) std::ofstream(texts / fmt::format("{:02}.txt", i)) << document(i);
    ChildProcess prepare({.command = {program(), "prepare", texts.string(), "--out",
                                      (root_.path() / "data").string(), "--held-out", "0.1"},
                          .output = root_.path() / "prepare.out"});
    const auto status = prepare.wait_for(kPatience);
    EXPECT_TRUE(status && status->ok()) << read_if_there(root_.path() / "prepare.out");
}

std::filesystem::path TrainingRuns::write_config(const std::vector<std::string>& sites,
                                                 const std::map<std::string, std::string>& changes) const {
    std::map<std::string, std::string> values{
        {"run.name", "\"test\""},
        {"model.layers", "2"},
        {"model.hidden", "32"},
        {"model.heads", "2"},
        {"model.ffn", "64"},
        {"model.context", "32"},
        {"data.train", fmt::format("[\"{}/data/train_*.bin\"]", root_.path().string())},
        {"data.validation", fmt::format("[\"{}/data/validation_*.bin\"]", root_.path().string())},
        {"train.steps", "12"},
        {"train.sequences_per_step", "4"},
        {"train.micro_batch", "2"},
        {"optim.lr", "1e-2"},
        {"outer.inner_steps", "4"},
        {"outer.warmup_rounds", "0"},
        {"island.threads", "1"},
        {"checkpoint.interval", "0"},
        {"monitor.log_interval", "1"},
        {"monitor.eval_windows", "8"},
    };
    // More must be kept right than with the mean of the sites, which so few are given by themselves.
    if (!changes.contains("outer.method")) values["outer.momentum"] = "0.9";
    for (const auto& [key, value] : changes) values[key] = value;
    std::map<std::string, std::string> tables;
    for (const auto& [key, value] : values) {
        const auto dot = key.find('.');
        tables[key.substr(0, dot)] += key.substr(dot + 1) + " = " + value + "\n";
    }
    std::string text;
    for (const auto& [table, lines] : tables) text += "[" + table + "]\n" + lines;
    for (const auto& site : sites) text += "[[site]]\nname = \"" + site + "\"\n";
    const auto path = root_.path() / fmt::format("config_{:016x}.toml", std::hash<std::string>()(text));
    std::ofstream(path) << text;
    return path;
}

ChildProcess TrainingRuns::start(const std::string& run, const std::filesystem::path& config,
                                 const std::vector<std::string>& arguments) const {
    ChildOptions options{.command = {program(), "run", config.string(), "--run-dir", directory(run).string()},
                         .output = root_.path() / (run + ".out")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    return ChildProcess(options);
}

ChildProcess TrainingRuns::start_on_shaped_loopback(const std::string& rate, const std::string& run,
                                                    const std::filesystem::path& config,
                                                    const std::vector<std::string>& arguments) const {
    const std::string shape = fmt::format(
        "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate {} burst 64kb latency 100ms && "
        "exec \"$@\"",
        rate);
    ChildOptions options{.command = {"unshare", "--net", "sh", "-c", shape, "sh", program(), "run",
                                     config.string(), "--run-dir", directory(run).string()},
                         .output = root_.path() / (run + ".out")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    return ChildProcess(options);
}

RunOutcome TrainingRuns::finish(const std::string& run, ChildProcess& process) const {
    RunOutcome outcome;
    const auto status = process.wait_for(kPatience);
    EXPECT_TRUE(status) << run << " did not end\n" << output(run);
    outcome.status = status.value_or(ExitStatus{.code = -1});
    outcome.log = output(run);
    const std::string text = read_if_there(directory(run) / "summary.json");
    if (!text.empty()) outcome.summary = nlohmann::json::parse(text);
    return outcome;
}

RunOutcome TrainingRuns::run(const std::string& run, const std::filesystem::path& config,
                             const std::vector<std::string>& arguments) const {
    ChildProcess process = start(run, config, arguments);
    return finish(run, process);
}

std::string TrainingRuns::output(const std::string& run) const {
    return read_if_there(root_.path() / (run + ".out"));
}

bool TrainingRuns::wait_for_text(const std::string& run, const std::string& text) const {
    const SystemClock clock;
    const Deadline deadline = clock.after(kPatience);
    while (output(run).find(text) == std::string::npos) {
        if (clock.now() > deadline) return false;
        ChildProcess({.command = {"sleep", "0.02"}}).wait_for(Milliseconds(1000));
    }
    return true;
}

std::map<std::int64_t, double> TrainingRuns::losses(const std::string& run, const std::string& site) const {
    std::map<std::int64_t, double> by_step;
    std::istringstream lines(read_if_there(directory(run) / "metrics" / (site + ".jsonl")));
    for (std::string line; std::getline(lines, line);) {
        const auto record = nlohmann::json::parse(line);
        if (record.contains("train_loss")) by_step[record["step"]] = record["train_loss"];
    }
    return by_step;
}

void TrainingRuns::expect_same_losses(const std::string& one, const std::string& other,
                                      const std::string& site) const {
    EXPECT_EQ(losses(one, site), losses(other, site)) << site;
}

std::map<std::int64_t, std::int64_t> TrainingRuns::round_ends(const std::string& run,
                                                              const std::string& site) const {
    std::map<std::int64_t, std::int64_t> ends;
    std::istringstream lines(read_if_there(directory(run) / "metrics" / (site + ".jsonl")));
    for (std::string line; std::getline(lines, line);) {
        const auto record = nlohmann::json::parse(line);
        if (record.contains("contributors")) ends[record["round"]] = record["step"];
    }
    return ends;
}

std::int64_t TrainingRuns::round_sums(const std::string& run, const std::string& site,
                                      const std::string& key) const {
    std::int64_t sum = 0;
    std::istringstream lines(read_if_there(directory(run) / "metrics" / (site + ".jsonl")));
    for (std::string line; std::getline(lines, line);) {
        const auto record = nlohmann::json::parse(line);
        if (record.contains("contributors")) sum += record.at(key).get<std::int64_t>();
    }
    return sum;
}

ExitStatus TrainingRuns::call(const std::vector<std::string>& arguments,
                              const std::string& output_name) const {
    ChildOptions options{.command = {program()}, .output = root_.path() / (output_name + ".out")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    ChildProcess process(options);
    return process.wait_for(kPatience).value_or(ExitStatus{.code = -1});
}

namespace {

bool can_listen_on(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const bool can = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    return can;
}

}  // namespace

std::uint16_t free_port() {
    constexpr int kFirst = 10'000, kPorts = 20'000;
    static int calls = 0;
    std::uint16_t port = 0;
    do {
        port = static_cast<std::uint16_t>(kFirst + (::getpid() * 17 + calls++) % kPorts);
    } while (!can_listen_on(port));
    return port;
}

std::vector<pid_t> find_processes(const std::vector<std::string>& words) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const pid_t pid = std::atoi(entry.path().filename().c_str());
        if (pid <= 0) continue;
        std::ifstream file(entry.path() / "cmdline");
        std::string command((std::istreambuf_iterator<char>(file)), {});
        for (char& c : command)
            if (c == '\0') c = ' ';
        bool all = !command.empty();
        for (const auto& word : words) all &= command.find(word) != std::string::npos;
        if (all) found.push_back(pid);
    }
    return found;
}

}  // namespace atl::test
