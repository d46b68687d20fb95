// `atoll-worker`: one rank of an island, started by `atoll run`.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "config/load_config.h"
#include "core/error.h"
#include "engine/executor.h"
#include "worker/jobs.h"

namespace atl {
namespace {

// `atoll run` sets these for every rank, whoever launched it.
std::int32_t launcher_number(const char* name, std::int32_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : static_cast<std::int32_t>(std::atoi(value));
}

void add_train(CLI::App& app, FileSystem& files, std::function<int()>& job) {
    const auto options = std::make_shared<TrainJob>();
    CLI::App& verb = *app.add_subcommand("train", "Train as one rank of a site");
    verb.add_option("--run-dir", options->run_directory)->required();
    verb.add_option("--site", options->site)->required();
    verb.add_option("--threads", options->threads)->check(CLI::PositiveNumber);
    verb.add_option("--rendezvous", options->rendezvous, "A fresh directory that all ranks see");
    verb.add_option("--resume", options->resume);
    verb.add_option("--dump-batches", options->dump_batches, "Rank 0 writes SITE.bin in this directory");
    verb.callback([options, &files, &job] {
        options->rank = launcher_number("RANK", 0);
        options->ranks = launcher_number("WORLD_SIZE", 1);
        job = [options, &files] { return run_train_job(*options, files); };
    });
}

void add_eval(CLI::App& app, FileSystem& files, std::function<int()>& job) {
    const auto options = std::make_shared<EvalJob>();
    CLI::App& verb = *app.add_subcommand("eval", "Mean loss of a checkpoint over data");
    verb.add_option("checkpoint", options->checkpoint)->required();
    verb.add_option("--data", options->data)->required();
    verb.add_option("--windows", options->windows);
    verb.add_option("--threads", options->threads)->check(CLI::PositiveNumber);
    verb.add_flag("--json", options->json);
    verb.callback(
        [options, &files, &job] { job = [options, &files] { return run_eval_job(*options, files); }; });
}

void add_bench(CLI::App& app, FileSystem& files, std::function<int()>& job) {
    const auto options = std::make_shared<BenchJob>();
    const auto source = std::make_shared<ConfigSource>();
    CLI::App& verb = *app.add_subcommand("bench", "Speed of one island on random tokens");
    verb.add_option("config", source->file)->required();
    verb.add_option("--set", source->overrides)->allow_extra_args(false);
    verb.add_option("--steps", options->steps)->check(CLI::PositiveNumber);
    verb.add_option("--threads", options->threads)->check(CLI::PositiveNumber);
    verb.add_option("--rendezvous", options->rendezvous, "A fresh directory that all ranks see");
    verb.add_option("--link", options->link, "The rate of what joins the ranks, where somebody limits it");
    verb.add_option("--profile", options->profile);
    verb.add_flag("--replay", options->replays);
    verb.add_flag("--ingredients", options->ingredients);
    verb.add_option("--svg", options->picture);
    verb.add_option("--trace", options->trace);
    verb.add_flag("--json", options->json);
    verb.callback([options, source, &files, &job] {
        options->rank = launcher_number("RANK", 0);
        options->ranks = launcher_number("WORLD_SIZE", 1);
        job = [options, source, &files] {
            source->check_files = false;
            options->config = load_config(files, *source).config;
            return run_bench_job(*options, files);
        };
    });
}

int run(int argc, char** argv) {
    const auto files = make_system_file_system();
    std::function<int()> job;
    CLI::App app{"One rank of an Atoll island; started by `atoll`.", "atoll-worker"};
    app.require_subcommand(1);
    add_train(app, *files, job);
    add_eval(app, *files, job);
    add_bench(app, *files, job);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    check_gloo_library();
    return job();
}

}  // namespace
}  // namespace atl

// Not with fmt::print, which throws where nobody reads any more, as when the terminal is gone.
int main(int argc, char** argv) {
    try {
        return atl::run(argc, argv);
    } catch (const atl::UserError& error) {
        std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
        return 2;
    } catch (const atl::WorldError& error) {
        std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
        return atl::kExitAccident;
    } catch (const std::exception& error) {
        std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
        return 1;
    }
}
