// The programs that an island's options mean for one rank. Pure functions: every rank can tell everybody's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "island/island_options.h"
#include "program/op_profile.h"
#include "program/program.h"
#include "program/step_ops.h"

namespace atl {

// The ops of a rank's step before they are ordered, and the schedule that orders them.
StepOps training_step(const IslandOptions& options, Rank rank);
std::vector<StepOps> training_steps(const IslandOptions& options);  // [rank]
ScheduleTable training_table(const IslandOptions& options);
// What a profile or a plan must be for; links are not known here.
ProfileFingerprint step_fingerprint(const IslandOptions& options);

Program training_program(const IslandOptions& options, Rank rank);
Program evaluation_program(const IslandOptions& options, Rank rank);

// The collectives' groups of both programs, with their members.
std::map<std::string, std::vector<Rank>> island_groups(const IslandOptions& options, Rank rank);
// Whether steps send messages from rank to rank.
bool has_stages(const ParallelShape& parallel);

}  // namespace atl
