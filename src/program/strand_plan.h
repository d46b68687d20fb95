// StrandPlan: in which order the two strands of each kind of pair are issued, whether they are interleaved at all, and
// why. A plan and a step's ops make a program: a pure function, so ranks that hold equal plans run programs that fit.
//
// A pair is known by its two pieces of work; the plan holds for all their micro-batches and on every rank that holds
// their stages. Its order numbers the ops of the first piece as they stand, then those of the second, without receives.
// Errors: UserError for text that is no plan, or a plan for other ops. Cost: O(ops).
#pragma once

#include <string>
#include <vector>

#include "program/op_profile.h"
#include "program/schedule_table.h"

namespace atl {

struct StepOps;

struct PlannedPair {
    Work first, second;  // micro-batch 0 stands for all
    std::int32_t first_ops = 0;
    std::int32_t second_ops = 0;
    std::vector<std::int32_t> order;
    double seconds = 0;
    double serial_seconds = 0;   // one op after another
    double busiest_seconds = 0;  // of the engine with most to do
    std::int64_t peak_bytes =
        0;  // of activations, relative to the pair's start, while ops run one after another
    std::int64_t most_bytes = -1;  // that were allowed; -1: no bound
    bool operator==(const PlannedPair&) const = default;
};

// Of a whole step, on the virtual executor; seconds.
struct StepPrediction {
    double serial_seconds = 0;
    double barrier_seconds = 0;
    double event_seconds = 0;
    double compute_seconds = 0;        // of the rank with most
    double communication_seconds = 0;  // of the rank with most, alone
    bool operator==(const StepPrediction&) const = default;

    // What of the communication costs no time.
    double hidden_share() const {
        return communication_seconds > 0 ? (serial_seconds - event_seconds) / communication_seconds : 0;
    }
};

struct StrandPlan {
    bool interleaves = false;  // false: one piece of work after another
    // For steps of one micro-batch: it is run as two, each with half of the sequences, in strands that begin together
    // (Wang et al., "Domino", 2024). The gradients are then added up in halves, so their last bits are others.
    bool halves_micro_batches = false;
    std::string reason;
    std::string costs;  // where the ops' times come from
    ProfileFingerprint fingerprint;
    StepPrediction predicted;
    double step_seconds = 0;  // what a run's steps by it took; 0: not known
    std::vector<PlannedPair> pairs;
    bool operator==(const StrandPlan&) const = default;

    const PlannedPair* find(const Slot& slot) const;  // null: not planned
    // Of all that decides what ranks run. 32 hex digits.
    std::string hash() const;
};

StrandPlan serial_plan(std::string reason);

// Pairs that the plan doesn't know are issued by turns (program/interleave.h).
Program planned_program(const StepOps& step, const ScheduleTable& table, const StrandPlan& plan);

std::string to_json(const StrandPlan& plan);
StrandPlan strand_plan_from_json(const std::string& text, const std::string& where);

}  // namespace atl
