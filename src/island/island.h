// Island: one rank's part of an island, as the training loop sees it: a model with its optimizer that takes one
// inner step at a time. Programs, memory and executors are inside.
//
// Data: the caller writes micro-batches straight into the program's input memory (inputs()), then calls step().
// Data-parallel rank d of n holds the site's micro-batches d, d + n, d + 2 n, …; ranks that share a replica of the model
// get the same ones.
// State: logical tensors by Hugging Face name, row-major, in the island's dtype; parameters and moments. A rank holds a
// box of each, or none; whole tensors come together on the gateway, rank 0. Views stay valid, and their bytes the
// island's, for its whole life; they may be read and written between calls.
// Collective calls (marked so): every rank makes them in the same order.
// Threads: one caller. Errors: CommError when a rank of the island is lost (the island is then dead); CheckError.
// Cost: memory as predicted_bytes() says, allocated in the constructor; a step allocates nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/evaluation_windows.h"
#include "engine/executor.h"
#include "island/island_options.h"
#include "model/tensors.h"

namespace atl {

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
    explicit Island(const IslandOptions& options, const IslandLinks& links = {});
    ~Island();
    Island(const Island&) = delete;
    Island& operator=(const Island&) = delete;

    const IslandOptions& options() const;

    // Parameters from the seed, moments zero, no steps done.
    void initialise(std::uint64_t seed);

    // Logical tensors in the model's order. Plain gradient descent has no moments, and Muon no second one of what it steps.
    const std::vector<TensorSpec>& tensors() const;
    BufferView tensor(TensorKind kind, const std::string& name);  // of a rank that holds it in one piece
    bool has_moments() const;
    std::vector<TensorKind> tensor_kinds() const;  // parameters, and moments if there are any
    bool has(TensorKind kind, const TensorSpec& tensor) const;

    // Collective: every tensor of a kind, whole, in the model's order. collect shows them where they are whole: on the
    // gateway, and on ranks that hold all of them anyway. distribute has them written on the gateway, and brings them to
    // whoever holds part of them. A view is valid during the call alone.
    // All ranks select the same ones; without a selection it is all.
    using VisitTensor = std::function<void(const TensorSpec&, BufferView whole)>;
    using SelectTensor = std::function<bool(const TensorSpec&)>;
    void collect(TensorKind kind, const VisitTensor& visit, const SelectTensor& select = {});
    void distribute(TensorKind kind, const VisitTensor& fill, const SelectTensor& select = {});

    // Collective: all parameters as fp32, tensors sorted by name, one behind the other: what the outer loop works on.
    // Spans that are empty take no part in it but for this rank's boxes; tensors that are not selected keep their place.
    std::int64_t parameter_count() const;
    void copy_parameters(std::span<float> destination, const SelectTensor& select = {});
    void set_parameters(std::span<const float> source, const SelectTensor& select = {});
    std::string
    parameters_blake2b();  // collective: of the bytes copy_parameters gives; "" where they are not whole

    // The optimizer's own count of steps applied (Adam's t); part of a checkpoint.
    std::int64_t optimizer_steps() const;
    void set_optimizer_steps(std::int64_t steps);
    void share_optimizer_steps();        // collective: the gateway's becomes everybody's
    std::int64_t skipped_steps() const;  // whose gradient norm was not finite, since construction

    // Another order of the same step from now on, for schedule = strands; the plan is for micro-batches of this island's
    // size. Parameters, moments and counters stay, and so do their views; inputs are to be filled anew. All ranks do it
    // between the same two steps. Throws UserError for a plan of other ops, and then changes nothing.
    void set_plan(std::shared_ptr<const StrandPlan> plan);

    // One inner step: fill inputs(k) with the site's micro-batch micro_batch_of(k) for each k, then call step().
    std::int64_t local_micro_batches() const;
    std::int64_t micro_batch_of(std::int64_t local_index) const;
    MicroBatchView inputs(std::int64_t local_index);
    StepResult step(double learning_rate);  // collective

    // Collective: sums over windows [begin, end), with the parameters as they are now; each replica of the model computes
    // its share. The windows' micro_batch and context must be the island's.
    EvaluationResult evaluate(const EvaluationWindows& windows, std::int64_t begin, std::int64_t end,
                              const std::function<void()>& after_batch = {});

    std::string gradients_blake2b() const;  // of what this rank holds of them, from the last step

    StepTimes times() const;
    // Of the last step's ops, as Executor has them.
    const std::vector<OpTime>& op_times() const;
    TimePoint step_begin() const;
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
