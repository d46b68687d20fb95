// What torchrun, mpirun and srun tell a process that they started: which rank of how many it is, and where they meet.
//
//   torchrun  RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   mpirun    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE (Open MPI)
//   srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_STEP_NUM_NODES
//
// Ranks of one machine meet in a directory named after the launch and the process that launched them; ranks of several
// at MASTER_ADDR:MASTER_PORT, or one port further where torchrun's agent keeps that one to itself
// (TORCHELASTIC_USE_AGENT_STORE). Pure: environment and launcher are arguments. Errors: UserError for a launch that
// doesn't say enough.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace atl {

struct LaunchedRank {
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    std::int32_t local_rank = 0;
    std::int32_t local_ranks = 1;
    std::string meeting;            // of this launch, a file name; empty: MASTER_ADDR and this port
    std::int32_t meeting_port = 0;  // 0 with a directory
    bool operator==(const LaunchedRank&) const = default;
};

using Environment = std::function<const char*(const char* name)>;  // null for what is not set

// Nothing when no launcher started this process, or started it alone.
// `launcher`: the process that started this one, the same for all ranks of a machine.
std::optional<LaunchedRank> launched_rank(const Environment& environment, std::int64_t launcher);

}  // namespace atl
