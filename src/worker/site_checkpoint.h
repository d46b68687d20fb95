// What a site writes to disk and finds again: the island's parameters and moments, and the outer state. Stopping
// and going on from it is the same as never stopping, at any inner step (the part of a round already trained is in
// the local parameters). The settings that a run keeps for life are written too: src/cli compares them.
//
// Sections of a checkpoint (src/checkpoint/FORMAT.md): parameters, moment1, moment2, anchor, outer_momentum,
// outer_second, residual, start, own_momentum, pending. Tensors are written whole, whatever the island's layout, so a run goes on under another one.
//
// What moves the island's tensors is collective: the island's other ranks give or take their state meanwhile.
// Threads: one caller. Errors: StorageError, CorruptDataError; a checkpoint of another model is a UserError.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/run_config.h"
#include "core/log.h"
#include "exchange/moments_donor.h"
#include "island/island.h"
#include "outer/outer_model.h"
#include "rounds/control.h"
#include "worker/reporter.h"

namespace atl {

struct SiteCheckpointNames {
    std::filesystem::path checkpoints;  // RUN/checkpoints
    std::string run_id;
    std::string site;
    std::string data_contents = {};  // of data.train (data/contents.h), for whoever goes on from it
};

// `open_plan`: inside a round, the plan that the local steps belong to; else null.
void write_site_checkpoint(FileSystem& files, const SiteCheckpointNames& names, const RunConfig& config,
                           const CheckpointRef& ref, const RoundPlan* open_plan, Island& island,
                           OuterModel& outer, const ReporterProgress& progress);

// The complete checkpoints of this run that the site holds, newest first. Every byte is read once: one whose bytes
// differ from their hashes is not offered, and the log says so.
std::vector<CheckpointRef> offered_checkpoints(const FileSystem& files, const SiteCheckpointNames& names,
                                               const Log& log);

struct ReadCheckpoint {
    std::optional<RoundPlan> open_plan;  // inside a round: the plan it was written with
    ReporterProgress progress;
};

// Fills island and outer state from the site's checkpoint of that step.
ReadCheckpoint read_site_checkpoint(const FileSystem& files, const SiteCheckpointNames& names, Step step,
                                    Island& island, OuterModel& outer);

// The moments of the newest complete checkpoint, as Trainer::set_moments takes them, with the hash it returns; nothing
// where there is none that can be read, and the log says why. Any thread. `moment_tensors`: names in a checkpoint.
std::optional<KeptMoments> read_newest_moments(const FileSystem& files, const SiteCheckpointNames& names,
                                               const std::vector<std::string>& moment_tensors, const Log& log);
std::vector<std::string> moment_tensors(Island& island);

// Parameters alone, from any checkpoint (an imported model, another run's anchor); moments stay zero. Returns what was
// passed over to find it, for the log.
std::vector<std::string> read_initial_parameters(const FileSystem& files, const std::filesystem::path& path, Island& island);

}  // namespace atl
