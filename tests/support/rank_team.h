// All ranks of an island in one process, a thread each for a step, joined by local collectives: what proves that a
// model computes the same however it is spread over them. Tensors go in and come out as logical ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/island/local_collective.h"
#include "island/loaded_program.h"
#include "model/training_program.h"
#include "program/schedule.h"

namespace atl::test {

struct LogicalTensor {
    Box box;  // all of it
    std::vector<double> values;
    bool operator==(const LogicalTensor&) const = default;
};
using LogicalTensors = std::map<std::string, LogicalTensor>;

// N(center, 0.2²), larger than a model's own initial values, so that no part of it is nearly linear.
LogicalTensors random_parameters(const ModelShape& shape);
// The largest difference over all tensors, each relative to the largest element of `expected`; fails a check unless
// both have the same tensors.
double largest_relative_difference(const LogicalTensors& actual, const LogicalTensors& expected);

struct RankTeamOptions {
    ModelShape shape;
    TrainingProgramOptions training;      // rank, micro_batches and scratch are filled in
    std::int32_t step_micro_batches = 4;  // of all data-parallel ranks together
    ExecutorOptions executor;             // groups are filled in
    std::function<Program(const StepOps&)> schedule = serial_schedule;
};

class RankTeam {
  public:
    explicit RankTeam(const RankTeamOptions& options);

    void set_parameters(const LogicalTensors& tensors);  // and moments to zero
    // A step on random packed documents. A step's tokens are the same for every team.
    void step(std::int64_t number, double learning_rate);
    // Evaluates the micro-batches of a step with the parameters as they are.
    double evaluate(std::int64_t number);

    double loss() const;  // the sum over the step's tokens
    double norm2() const;
    // Assembled from the ranks' boxes. Every element must be there, and the same bits wherever it is held.
    LogicalTensors parameters() const;
    LogicalTensors gradients() const;  // reduced ones
    LogicalTensors moments() const;    // first moments

    // What a rank's placement says beyond the bytes that were touched; 0, but that documents shorter than attention's
    // block of queries leave the end of its scratch alone, which counts as touched here.
    std::int64_t untouched_bytes(std::int32_t rank) const;

    std::int32_t ranks() const { return options_.training.parallel.ranks(); }
    LoadedProgram& rank(std::int32_t rank) { return *programs_[static_cast<std::size_t>(rank)]; }

  private:
    using Loaded = std::vector<std::unique_ptr<LoadedProgram>>;
    void load(Loaded& loaded, std::vector<Program> programs, bool shares_memory);
    void run(Loaded& loaded, std::int64_t number);
    double loss_of(const Loaded& loaded) const;
    // Of the values that `is_wanted(program, value)` says.
    template <class IsWanted>
    LogicalTensors assemble(IsWanted is_wanted) const;

    RankTeamOptions options_;
    // One object per member of each group; groups of one name may differ between ranks.
    std::map<std::pair<std::string, std::vector<Rank>>, std::vector<std::unique_ptr<IslandCollective>>>
        collectives_;
    std::vector<std::unique_ptr<PointToPoint>> messages_;
    Loaded programs_;
    Loaded evaluation_;
};

}  // namespace atl::test
