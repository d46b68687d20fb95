// `atoll run CONFIG`: the whole job on this machine, or one site of it with --site.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>

#include <cstdio>
#include <cstdlib>

#include "cli/bring_checkpoint.h"
#include "cli/kept_run.h"
#include "cli/launch_plan.h"
#include "cli/run_summary.h"
#include "cli/supervisor.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/new_folder.h"

namespace atl::cli {
namespace {

struct RunOptions {
    ConfigOptions config;
    std::filesystem::path run_directory;
    std::string site;
    bool with_coordinator = false;
    std::string resume = "auto";
    std::int64_t stop_at = 0;
    std::filesystem::path dump_batches;
    bool json = false;
};

// One launcher a run directory: a second one would mix two runs in it. Held until the process ends.
class DirectoryLock {
  public:
    explicit DirectoryLock(const std::filesystem::path& path)
        : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
        if (file_ < 0 || ::flock(file_, LOCK_EX | LOCK_NB) != 0)
            throw UserError(fmt::format("[run] another atoll run works in {}; choose another --run-dir",
                                        path.parent_path().string()));
    }
    ~DirectoryLock() { ::close(file_); }
    DirectoryLock(const DirectoryLock&) = delete;
    DirectoryLock& operator=(const DirectoryLock&) = delete;

  private:
    int file_;
};

void refuse_to_mix_runs(const FileSystem& files, const std::filesystem::path& directory,
                        const std::string& resume) {
    if (resume == "none" && files.exists(directory / "checkpoints") &&
        !files.list(directory / "checkpoints").empty())
        throw UserError(
            fmt::format("[run] --resume none, but {} holds checkpoints of an earlier run; remove it, or "
                        "choose another --run-dir, or go on with --resume auto",
                        directory.string()));
}

// A process that is started again goes on with this very run, wherever the run began.
ChildOptions started_again(ChildOptions process, int start) {
    auto& words = process.command;
    const auto resume = std::find(words.begin(), words.end(), "--resume");
    if (start > 0 && resume != words.end() && resume + 1 != words.end()) resume[1] = "auto";
    return process;
}

std::vector<SupervisedGroup> groups_of(const LaunchPlan& plan, const std::filesystem::path& run_directory,
                                       FileSystem& files) {
    std::vector<SupervisedGroup> groups;
    if (plan.coordinator)
        groups.push_back({.name = "coordinator",
                          .processes = [child = *plan.coordinator](
                                           int start) { return std::vector{started_again(child, start)}; },
                          .process_name = [](std::size_t) { return "process"; },
                          .restarts = 1000,
                          .essential = false,
                          .leads = true});
    for (const auto& island : plan.islands)
        groups.push_back({.name = "site " + island.site,
                          .processes =
                              [island, run_directory, &files](int start) {
                                  if (!island.meets_here) return island.ranks;
                                  const auto rendezvous =
                                      rendezvous_directory(run_directory, island.site, start);
                                  if (files.exists(rendezvous)) files.remove_all(rendezvous);
                                  files.create_directories(rendezvous);
                                  auto ranks = island.ranks;
                                  for (auto& rank : ranks) {
                                      rank = started_again(std::move(rank), start);
                                      rank.command.push_back("--rendezvous");
                                      rank.command.push_back(rendezvous.string());
                                  }
                                  return ranks;
                              },
                          .process_name =
                              [first = island.first_rank](std::size_t index) {
                                  return fmt::format("rank {}", first + static_cast<std::int64_t>(index));
                              },
                          .restarts = island.restarts,
                          // The coordinator ends the run for all its sites; without it here, the site leaves.
                          .gets_interrupt = !plan.coordinator});
    return groups;
}

int tell(const RunOptions& options, const std::filesystem::path& directory, const RunSummary& summary) {
    if (options.json) {
        fmt::print("{}", summary.json);
    } else {
        fmt::print("{}run directory: {}\n", summary.table, directory.string());
    }
    return summary.sites_reporting == 0 ? kRunFailed : kSuccess;
}

int run(Context& context, const RunOptions& options) {
    RunConfig config = load(context, options.config);
    if (config.data.train.empty()) throw UserError("[run] data.train is empty: there is nothing to train on");
    const auto directory = std::filesystem::absolute(
        options.run_directory.empty() ? std::filesystem::path(config.run.directory) : options.run_directory);
    config.run.directory = directory.string();
    FileSystem& files = *context.files;
    require_folder_or_nothing(directory, options.run_directory.empty() ? "run.directory" : "--run-dir");
    refuse_to_mix_runs(files, directory, options.resume);
    check_kept_settings(files, directory, options.resume, config);
    files.create_directories(directory);
    const auto launched =
        launched_rank([](const char* name) -> const char* { return std::getenv(name); }, ::getppid());
    const bool leads = !launched || launched->rank == 0;
    std::optional<DirectoryLock> lock;
    if (leads) lock.emplace(directory / "launcher.lock");
    if (leads && options.resume != "auto" && options.resume != "none")
        bring_checkpoint(files, options.resume, directory);
    files.write_text_atomically(directory / "config.toml", to_toml(config));
    context.log.also_to(directory / "log.txt");

    // The others have it too, or have gone: there is nobody to wait for.
    const bool is_alone = !options.site.empty() && !launched;
    if (is_alone && options.resume == "auto" && has_finished(files, directory, options.site, config)) {
        context.log.info("[run] site {} has the checkpoint of step {}, the run's last: there is nothing left to do",
                         options.site, config.train.steps);
        return tell(options, directory, summarize_run(files, directory, {options.site}));
    }

    LaunchRequest request{.config = config,
                          .run_directory = directory,
                          .programs = program_directory(),
                          .with_coordinator = options.with_coordinator,
                          .resume = options.resume,
                          .processors = allowed_processors(),
                          .launched = launched};
    if (!options.site.empty()) request.site = options.site;
    if (options.stop_at > 0) request.stop_at = options.stop_at;
    if (!options.dump_batches.empty()) {
        request.dump_batches = std::filesystem::absolute(options.dump_batches);
        files.create_directories(*request.dump_batches);
    }
    const LaunchPlan plan = plan_launch(request);
    for (const auto& island : plan.islands)
        context.log.info("[run] site {}: {} of {} rank(s), {} thread(s) each{}", island.site,
                         island.ranks.size(), island.all_ranks, island.threads,
                         island.ranks.front().processors.empty() ? "" : ", pinned");

    std::vector<std::string> sites;
    for (const auto& island : plan.islands) sites.push_back(island.site);
    if (leads)
        for (const auto& site : sites) files.remove_all(directory / "summaries" / (site + ".json"));
    int code = supervise(groups_of(plan, directory, files), {}, context.log);
    if (!leads) return code;

    const RunSummary summary = summarize_run(files, directory, sites);
    // A start that came to nothing, as after the run's end, leaves what was told of the run.
    if (summary.trained || !files.exists(directory / "summary.json"))
        files.write_text_atomically(directory / "summary.json", summary.json);
    if (!summary.hashes_equal) {
        context.log.error("[run] the sites' parameters differ");
        code = std::max(code, kRunFailed);
    }
    return std::max(code, tell(options, directory, summary));
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
    const auto options = std::make_shared<RunOptions>();
    CLI::App& verb = *app.add_subcommand("run", "Train: the whole job on this machine, or one site of it");
    verb.alias("train");
    add_config_options(verb, options->config);
    verb.add_option("--run-dir", options->run_directory, "Where the run's files go (default: runs/NAME)");
    verb.add_option("--site", options->site, "Run this site alone, against the coordinator of the config");
    verb.add_flag("--with-coordinator", options->with_coordinator, "With --site: host the coordinator too");
    verb.add_option("--resume", options->resume,
                    "auto, none, or RUN/checkpoints/step_N, of this run or another")
        ->capture_default_str();
    verb.add_option("--stop-at", options->stop_at, "Stop after this inner step, with a checkpoint")
        ->check(at_least(1));
    verb.add_option("--dump-batches", options->dump_batches,
                    "Write what each site trains on to SITE.bin in this directory, for comparisons")
        ->check(writable_folder());
    verb.add_flag("--json", options->json, "Print the summary as one JSON object");
    verb.callback(
        [&context, options] { context.command = [&context, options] { return run(context, *options); }; });
}

}  // namespace atl::cli
