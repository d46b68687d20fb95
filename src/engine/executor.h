// Executor: runs a program on the processor. Binding turns every op once into a call with its tensors ready; a
// step then only makes the calls: it allocates nothing and decides nothing.
//
// Threads: the caller of run() is the compute thread; one thread per link class runs that class's collectives in
// their order; sends and receives have two threads each, one that posts them in order, as far ahead as their memory
// lets it, and one that waits for them in order. An op starts when its issue order, data edges and `after` edges are
// done, and what else its mode says (program/execution_mode.h); in serial mode the caller does everything.
// Errors: a collective or message that fails, or a wait past its deadline, ends the step on this rank: run() throws
// CommError naming rank and op, and so does every later run(). Errors of our own (CheckError) pass through likewise.
// Whatever ended it, the rank gives up its groups, so that the other ranks learn of it at once.
// dtypes: f32 or f64 throughout a program; indices i32, losses and scalars f64.
// Source of the numbers' order: the program; thread counts are fixed at binding, because they change sums.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/island/collective.h"
#include "comm/island/point_to_point.h"
#include "core/clock.h"
#include "engine/program_memory.h"
#include "program/execution_mode.h"
#include "program/op_time.h"
#include "program/placement.h"
#include "program/program.h"

namespace atl {

// Pauses before every op, of up to `longest`, as a function of (seed, step, op): to try a program under other timings.
struct RandomDelays {
    std::uint64_t seed = 0;
    std::chrono::microseconds longest{0};
};

struct ExecutorOptions {
    std::int32_t threads = 1;  // of every compute op, this process's OpenMP and libtorch threads
    Milliseconds collective_timeout{300'000};  // of one collective or message, and of waiting for one
    std::map<std::string, IslandCollective*>
        groups;                              // by the program's group names; they outlive the executor
    PointToPoint* point_to_point = nullptr;  // between the program's ranks; it outlives the executor
    ExecutionMode mode = ExecutionMode::event;
    std::optional<RandomDelays> delays;
};

// What a step's time went to, as the compute thread sees it.
enum class StepShare : std::uint8_t { forward, backward, optimizer, communication };
inline constexpr std::size_t kStepShares = 4;

// Sums over the steps since the last reset. Seconds of the compute thread; communication is what it waited for
// links and messages, link_busy what the links' own threads spent in collectives, hidden behind compute or not.
struct StepTimes {
    std::int64_t steps = 0;
    double step_seconds = 0;
    std::array<double, kStepShares> share_seconds{};
    double link_busy_seconds = 0;
    std::map<OpKind, double> kind_seconds;  // of compute ops and collectives

    double seconds_of(StepShare share) const { return share_seconds[static_cast<std::size_t>(share)]; }
};

// Memory that libtorch allocated while an op ran: there should be none.
struct StepAllocations {
    std::int64_t peak_bytes = 0;  // highest sum of such bytes alive at once
    std::int64_t count = 0;
    std::map<OpKind, std::int64_t> count_by_kind;
};

class Executor {
  public:
    // All arguments outlive the executor. Fails a check for a collective whose group is missing.
    Executor(const Program& program, const ProgramMemory& memory, ExecutorOptions options);
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    // One step: reads the program's inputs from the memory, leaves its outputs there.
    void run();

    StepTimes times() const;
    void reset_times();
    // Of the last step; to be asked between steps. The beginning is a point of the machine's monotonic clock, which all
    // its processes share.
    const std::vector<OpTime>& op_times() const;  // [op]
    TimePoint step_begin() const;
    StepAllocations allocations() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// The scratch an op's kernel needs on `threads` threads: the rule to hand to program generators.
std::int64_t op_scratch_bytes(const Program& program, const Op& op, std::int32_t threads);

// Throws CheckError unless gloo:: functions come from Debian's libgloo and not from libtorch, which exports an
// incompatible Gloo under the same names. To be called once at a worker's start.
void check_gloo_library();

}  // namespace atl
