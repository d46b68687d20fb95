// A strand pair: the ops of two pieces of work that run interleaved on one rank, as the strand planner sees them, and
// how long they take in a given issue order.
//
// Ops are numbered by the pair: the first strand's in their own order, then the second's. An order is a list of these
// numbers. Weight gradients for which nothing in the pair waits are movable: their strand's other ops go on without
// them. Bytes are those of activations, relative to what lives when the pair begins.
// The clock is the virtual executor's for one rank whose partners keep up: one compute engine, one FIFO a link, ops
// that start as soon as data and issue order let them and slow each other down (program/overlap_model.h); sends take no
// time. Cost: O(ops) to run an order; tens of nanoseconds an op.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "program/interleave.h"
#include "program/overlap_model.h"

namespace atl {

struct PairOp {
    OpId id;
    std::int32_t strand = 0;  // 0 or 1
    OpClass op_class;
    double seconds = 0;                   // alone
    std::vector<std::int32_t> waits_for;  // of the pair, for data
    bool movable = false;

    bool communicates() const {
        return op_class.resource != Resource::compute && op_class.resource != Resource::host;
    }
};

// A value that comes or goes while the pair runs.
struct PairValue {
    std::int64_t bytes = 0;
    std::int32_t written_by = -1;          // -1: before the pair
    std::vector<std::int32_t> touched_by;  // in the pair
    bool dies = false;                     // nothing touches it after the pair
};

struct StrandPair {
    std::vector<PairOp> ops;
    std::vector<PairValue> values;
    std::size_t first_ops = 0;   // of the first strand
    bool shares_writes = false;  // an op of one strand waits for one of the other

    std::size_t second_ops() const { return ops.size() - first_ops; }
};

// seconds[op]: of the program's ops, alone. The program's ops stand in order of emission, that is a legal serial order:
// it tells what lives on after the pair. Cost: O(ops of the program).
StrandPair make_strand_pair(const Program& program, const LayerOps& first, const LayerOps& second,
                            const std::vector<double>& seconds);

// The most bytes that live at once while ops run one after another in this order.
std::int64_t peak_bytes(const StrandPair& pair, std::span<const std::int32_t> order);

// Sums of seconds: of all ops, and of the busiest engine, below which no order comes.
double serial_seconds(const StrandPair& pair);
double busiest_seconds(const StrandPair& pair);

class StrandClock {
  public:
    StrandClock(const StrandPair& pair, const OverlapModel& overlap);

    // Seconds from the start until all ops of the order have ended; some ops of the pair may be missing, and are then
    // taken to have ended before. Gives up, with more than `bound`, as soon as that is certain. An order in which ops
    // wait for later ones fails a check.
    double run(std::span<const std::int32_t> order, double bound = std::numeric_limits<double>::infinity());

  private:
    struct Engine {
        std::vector<std::int32_t> queue;
        std::size_t next = 0;
        std::int32_t running = -1;
        double work_left = 0;
        double rate = 1;
    };

    bool is_ready(std::int32_t op) const;
    bool start_ready_ops();  // whether anything started or ended
    void set_rates();

    const StrandPair& pair_;
    std::vector<std::int32_t> class_of_op_;
    std::vector<double> slowdowns_;  // [class][class]
    std::size_t classes_ = 0;
    std::array<Engine, kResources> engines_;
    std::vector<std::int64_t> issued_, ended_;  // [op]: in which run
    std::int64_t run_number_ = 0;
};

}  // namespace atl
