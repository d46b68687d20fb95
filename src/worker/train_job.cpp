#include <fmt/format.h>

#include <random>

#include "comm/site/make_transport.h"
#include "config/load_config.h"
#include "coordinator/coordinator_link.h"
#include "coordinator/run_options.h"
#include "core/error.h"
#include "data/contents.h"
#include "island/bench.h"
#include "island/strand_planner.h"
#include "metrics/progress.h"
#include "worker/gateway.h"
#include "worker/island_connections.h"
#include "worker/jobs.h"
#include "worker/termination_signal.h"

namespace atl {
namespace {

SiteId site_id(const RunConfig& config, const std::string& name) {
    for (std::size_t i = 0; i < config.sites.size(); ++i)
        if (config.sites[i].name == name) return SiteId(static_cast<std::int32_t>(i));
    throw UserError(fmt::format("--site {}: the config names no such site", name));
}

IslandOptions options_of_island(const TrainJob& job, const RunConfig& config) {
    const SiteConfig& site = config.sites[static_cast<std::size_t>(site_id(config, job.site).value())];
    if (site.island.ranks != job.ranks)
        throw UserError(fmt::format("[worker] site {} has island.ranks = {}, but {} ranks were launched",
                                    job.site, site.island.ranks, job.ranks));
    return island_options(config, site.island, job.threads);
}

// A port that the configuration leaves open is the coordinator's choice; it writes it to the run directory.
ControlClientOptions control_options(const RunConfig& config, const std::filesystem::path& run_directory) {
    const bool open_port = config.coordinator.address.ends_with(":0");
    return {.address = open_port ? "" : config.coordinator.address,
            .address_file = open_port ? run_directory / "coordinator.address" : std::filesystem::path()};
}

// `none` offers nothing, `auto` all there are, the path of a step's directory that one.
std::vector<CheckpointRef> checkpoints_to_offer(const TrainJob& job, const FileSystem& files,
                                                const SiteCheckpointNames& names, const Log& log) {
    if (job.resume == "none") return {};
    auto offered = offered_checkpoints(files, names, log);
    if (job.resume != "auto")
        std::erase_if(offered, [&](const CheckpointRef& checkpoint) {
            return checkpoint_directory(names.checkpoints, checkpoint.step).filename() !=
                   std::filesystem::path(job.resume).filename();
        });
    return offered;
}

Incarnation draw_incarnation() {
    std::random_device device;
    const std::uint64_t bits = std::uint64_t{device()} << 32 | device();
    return Incarnation(bits | 1);  // never 0
}

SiteOptions site_options(const RunConfig& config, const SiteInfo& self, const std::string& run_id,
                         Trainer& trainer, OuterModel& outer, std::vector<CheckpointRef> checkpoints) {
    SiteOptions options{.run_id = run_id, .self = self};
    options.hello.settings = shared_settings(config);
    options.hello.blocks_per_epoch = trainer.batches().order().blocks_per_epoch();
    for (OuterFragment& fragment : outer.fragments())
        options.hello.fragment_elements.push_back(fragment.elements());
    options.hello.checkpoints = std::move(checkpoints);
    options.progress = Milliseconds(config.timeouts.exchange_ms);
    return options;
}

// Only ZeroMQ can encrypt, so whatever asks for more than plain bytes gets it.
std::string transport_kind(const RunConfig& config) {
    if (config.exchange.transport != "auto") return config.exchange.transport;
    const bool plain =
        config.security.mode == SecurityMode::loopback || config.security.mode == SecurityMode::insecure;
    return plain ? "tcp" : "zmq";
}

int run_gateway(const TrainJob& job, const RunConfig& config, FileSystem& files, const Clock& clock,
                const Log& log, Trainer& trainer, RankTeam& team, const TerminationSignal& termination) {
    const SiteId self = site_id(config, job.site);
    const SiteConfig& site = config.sites[static_cast<std::size_t>(self.value())];
    const Incarnation incarnation = draw_incarnation();
    const auto transport = make_network_transport(
        transport_kind(config), {.self = self, .incarnation = incarnation, .run_id = config.run.name},
        {.bind = site.address,
         .connections = static_cast<std::int32_t>(config.exchange.connections),
         .shares_memory = config.exchange.shared_memory});
    const SiteCheckpointNames names{job.run_directory / "checkpoints", config.run.name, job.site,
                                    token_contents(files, config.data.train)};
    const SiteInfo info{self, job.site, incarnation, transport->address()};

    CoordinatorLink control(control_options(config, job.run_directory), clock);
    OuterModel outer(outer_model_options(config, trainer.island()));
    const auto load_moments = [&files, names, log, tensors = moment_tensors(trainer.island())] {
        return read_newest_moments(files, names, tensors, log);
    };
    SiteExchange exchange({.site = site_options(config, info, config.run.name, trainer, outer,
                                                checkpoints_to_offer(job, files, names, log)),
                           .heartbeat = Milliseconds(config.timeouts.heartbeat_ms),
                           .zstd = config.exchange.zstd,
                           .load_moments = load_moments},
                          *transport, control, clock, log);
    Island& island = trainer.island();
    log.info("[worker] {} parameters, {} of memory placed",
             human_count(static_cast<double>(island.parameter_count())),
             human_bytes(static_cast<double>(island.predicted_bytes())));
    Reporter reporter({.run_directory = job.run_directory,
                       .site = job.site,
                       .flops_per_step = island.flops_per_step() * job.ranks,
                       .matmul_peak_flops_per_second = measure_matmul_peak(job.threads) * job.ranks},
                      config, files, clock, log);
    Gateway gateway({.config = config,
                     .checkpoints = names,
                     .files = files,
                     .clock = clock,
                     .log = log,
                     .trainer = trainer,
                     .outer = outer,
                     .team = team,
                     .transport = *transport,
                     .exchange = exchange,
                     .reporter = reporter,
                     .leave = termination.raised(),
                     .coordinator_silence = [&control] { return control.silence(); }});
    return gateway.run();
}

}  // namespace

int run_train_job(const TrainJob& job, FileSystem& files) {
    const TerminationSignal termination;
    const SystemClock clock;
    Log log(job.site);
    log.also_to(job.run_directory / "log.txt");
    const RunConfig config = load_config(files, {.file = job.run_directory / "config.toml"}).config;
    try {
        IslandOptions island = options_of_island(job, config);
        const IslandConnections connections({.rank = Rank(job.rank),
                                             .ranks = job.ranks,
                                             .directory = job.rendezvous,
                                             .timeout = Milliseconds(config.timeouts.startup_ms)},
                                            island);
        StrandPlanner strands(
            connections.links(), files,
            {.plan = job.run_directory / fmt::format("strand_plan_{}.json", job.site),
             .profile = job.run_directory / fmt::format("strand_profile_{}.json", job.site)},
            log);
        strands.plan_at_start(island);
        Trainer trainer(config, files, island, connections.links(), strands);
        RankTeam team(connections.orders(), clock, Milliseconds(config.timeouts.island_ms));
        if (!team.is_gateway()) return trainer.serve(team);
        if (!job.dump_batches.empty()) trainer.dump_batches(files, job.dump_batches / (job.site + ".bin"));
        return run_gateway(job, config, files, clock, log, trainer, team, termination);
    } catch (const UserError& error) {
        log.error("{}", error.what());
        return 2;
    } catch (const CommError& error) {
        log.error("{}", error.what());
        return kExitAccident;
    } catch (const WorldError& error) {
        log.error("{}", error.what());
        return 1;
    }
}

}  // namespace atl
