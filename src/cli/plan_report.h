// What `atoll plan` says about a plan: figures, the pairing of communication and computation, text, JSON and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "program/plan_step.h"
#include "program/planner_ingredients.h"
#include "program/virtual_executor.h"

namespace atl::cli {

// A step of one site's island that is to be planned, and the same in halves where its one micro-batch can be cut.
struct StepToPlan {
    PlannableStep whole;
    std::optional<PlannableStep> halves;

    const PlannableStep& as_cut_by(const StrandPlan& plan) const {
        return plan.halves_micro_batches ? *halves : whole;
    }
};
// Throws UserError for a schedule without pairs. Scratch of kernels, which only those know who run them, is left out.
StepToPlan emit_steps(const RunConfig& config, const IslandConfig& island);

// A communication op of one pair, and what the same rank computes in the meantime.
struct HiddenOp {
    std::string name;
    double seconds = 0;
    std::vector<std::string> beside;
    double hidden_share = 0;  // of its time, in which the rank computes
};

struct PlanReport {
    const StepToPlan& step;
    StrandPlan plan;
    double planning_seconds = 0;
    std::int64_t peak_bytes_serial = 0;  // of the fullest rank
    std::int64_t peak_bytes = 0;
    std::string bound;              // what the step can't be shorter than, and by how much it is longer
    std::vector<HiddenOp> pairing;  // of one layer in the middle of a pair, on rank 0
    std::vector<Ingredient> ingredients;
    std::vector<Program> programs;
    VirtualRun run;
};
// Fills in what is not there yet, but for the ingredients. Places the memory of one rank of each pipeline stage.
void add_figures(PlanReport& report, const StepCosts& costs);

std::string text_of(const PlanReport& report);
std::string json_of(const PlanReport& report);
std::string picture_of(const PlanReport& report, const std::string& title);

}  // namespace atl::cli
