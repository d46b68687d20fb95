// Island: one rank's part of an island, as the training loop sees it: a model with its optimizer that takes one
// inner step at a time. Programs, memory and executors are inside.
//
// Data: the caller writes micro-batches straight into the program's input memory (inputs()), then calls step().
// Data-parallel rank d of n holds the site's micro-batches d, d + n, d + 2 n, …
// State: logical tensors by Hugging Face name, row-major, in the island's dtype; parameters and moments. Views
// stay valid, and their bytes the island's, for its whole life; they may be read and written between calls.
// Threads: one caller. Errors: CommError when a rank of the island is lost (the island is then dead); CheckError.
// Cost: memory as predicted_bytes() says, allocated in the constructor; a step allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/island/collective.h"
#include "config/run_config.h"
#include "data/evaluation_windows.h"
#include "data/micro_batch.h"
#include "engine/executor.h"
#include "model/model_shape.h"
#include "model/tensors.h"

namespace atl {

// evaluation: no gradients, no moments, no step().
enum class IslandPurpose : std::uint8_t { training, evaluation };

struct IslandOptions {
    ModelShape model;
    OptimConfig optim;
    BatchShape batch;  // of the whole site
    IslandPurpose purpose = IslandPurpose::training;
    std::int32_t threads = 1;
    DType dtype = DType::f32;  // f64 for tests
    Milliseconds collective_timeout{300'000};
    bool measure_memory = false;  // fill arenas with a pattern, so that measured_bytes() is exact
};

struct StepResult {
    double loss_sum = 0;       // over the site's tokens that have a loss
    std::int64_t tokens = 0;   // how many those are
    double gradient_norm = 0;  // of the mean loss, before clipping
    bool applied = false;      // false: the norm was not finite, and nothing changed
    double seconds = 0;

    double mean_loss() const { return tokens > 0 ? loss_sum / static_cast<double>(tokens) : 0; }
};

struct EvaluationResult {
    double loss_sum = 0;
    std::int64_t tokens = 0;
};

enum class TensorKind : std::uint8_t { parameter, first_moment, second_moment };

class Island {
  public:
    // `data_parallel` joins the ranks of this island that share its tensors; null for an island of one rank.
    explicit Island(const IslandOptions& options, IslandCollective* data_parallel = nullptr);
    ~Island();
    Island(const Island&) = delete;
    Island& operator=(const Island&) = delete;

    const IslandOptions& options() const;

    // Parameters from the seed, moments zero, no steps done.
    void initialise(std::uint64_t seed);

    // Logical tensors in the model's order. Plain gradient descent has no moments.
    const std::vector<TensorSpec>& tensors() const;
    BufferView tensor(TensorKind kind, const std::string& name);
    bool has_moments() const;
    // All parameters as fp32, tensors sorted by name, one behind the other: what the outer loop works on.
    std::int64_t parameter_count() const;
    void copy_parameters(std::span<float> destination) const;
    void set_parameters(std::span<const float> source);
    std::string parameters_blake2b() const;  // of the bytes copy_parameters gives

    // The optimizer's own count of steps applied (Adam's t); part of a checkpoint.
    std::int64_t optimizer_steps() const;
    void set_optimizer_steps(std::int64_t steps);
    std::int64_t skipped_steps() const;  // whose gradient norm was not finite, since construction

    // One inner step: fill inputs(k) with the site's micro-batch micro_batch_of(k) for each k, then call step().
    std::int64_t local_micro_batches() const;
    std::int64_t micro_batch_of(std::int64_t local_index) const;
    MicroBatchView inputs(std::int64_t local_index);
    StepResult step(double learning_rate);

    // Sums over windows [begin, end), with the parameters as they are now; every rank of the island calls it, and
    // each computes its share. The windows' micro_batch and context must be the island's.
    EvaluationResult evaluate(const EvaluationWindows& windows, std::int64_t begin, std::int64_t end);

    StepTimes times() const;
    void reset_times();
    double flops_per_step() const;  // of this rank, as utilization counts them (model/flops.h)

    std::int64_t predicted_bytes() const;  // arenas, as placed
    std::int64_t measured_bytes()
        const;  // highest bytes touched, and all that libtorch allocated behind them
    StepAllocations allocations() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace atl
