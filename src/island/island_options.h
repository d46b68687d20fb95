// What an island is made of: a model, its optimizer, its batches, how ranks share them, and what joins the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "comm/island/collective.h"
#include "comm/island/point_to_point.h"
#include "config/run_config.h"
#include "data/micro_batch.h"
#include "model/parallel_shape.h"
#include "program/execution_mode.h"
#include "program/schedule_table.h"
#include "program/strand_plan.h"

namespace atl {

// evaluation: no gradients, no moments, no step().
enum class IslandPurpose : std::uint8_t { training, evaluation };

// How the strands of a pair are ordered: by a plan on which all ranks agree, or by turns.
enum class StrandOrder : std::uint8_t { planned, alternating };

struct IslandOptions {
    ModelShape model;
    OptimConfig optim;
    BatchShape batch;  // of the whole site
    ParallelShape parallel;
    ScheduleKind schedule = ScheduleKind::serial;
    std::int32_t memory_micro_batches = 0;  // for strands; see ScheduleOptions
    StrandOrder strand_order = StrandOrder::planned;
    std::string plan_file;          // "" = made at the start
    bool measures_profile = false;  // that plans are made from, and tries plans for real
    std::string profile_file;       // or takes it from here; "" = from a cost model
    // For strands, equal on all ranks (island/strand_planning.h); null: they take turns.
    std::shared_ptr<const StrandPlan> plan;
    ExecutionMode mode = ExecutionMode::event;
    IslandPurpose purpose = IslandPurpose::training;
    std::int32_t threads = 1;
    DType dtype = DType::f32;  // f64 for tests
    Milliseconds collective_timeout{300'000};
    bool measure_memory = false;  // fill arenas with a pattern, so that measured_bytes() is exact
};

// What a checked configuration says about one site's island.
IslandOptions island_options(const RunConfig& config, const IslandConfig& island, std::int32_t threads);

// What joins this rank to the others; all of it outlives the island. An island of one rank needs nothing.
struct IslandLinks {
    Rank rank;
    // Between steps: all ranks.
    IslandCollective* world = nullptr;
    PointToPoint* messages = nullptr;
    // Inside steps: by the programs' group names, and all ranks.
    std::map<std::string, IslandCollective*> groups;
    PointToPoint* step_messages = nullptr;  // null without pipeline stages
};

}  // namespace atl
