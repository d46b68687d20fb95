// Trainer: what every rank of an island does: inner steps on data blocks, evaluation, and its part in moving
// the island's state to the gateway and back. Owns the corpus and the island.
//
// Threads: one caller. Errors: UserError for data that is not there, CommError for a lost rank.
#pragma once

#include <memory>
#include <optional>

#include "config/run_config.h"
#include "core/file_system.h"
#include "core/hash.h"
#include "data/batch_dump.h"
#include "data/corpus.h"
#include "data/evaluation_windows.h"
#include "data/micro_batch.h"
#include "island/island.h"
#include "island/strand_planner.h"
#include "worker/rank_team.h"

namespace atl {

class Trainer {
  public:
    // All arguments outlive the trainer.
    Trainer(const RunConfig& config, const FileSystem& files, const IslandOptions& island,
            const IslandLinks& links, StrandPlanner& strands);

    Island& island() { return *island_; }
    const BatchReader& batches() const { return batches_; }
    std::int64_t evaluation_windows() const;  // 0: no validation data

    // From now on every step's whole block, all ranks' shares of it, also goes to this file.
    void dump_batches(FileSystem& files, const std::filesystem::path& path);

    // Inner step `step` (from 0) on the block with this number in the endless stream.
    StepResult train(std::int64_t step, std::int64_t block);
    EvaluationResult evaluate(std::int64_t begin, std::int64_t end,
                              const std::function<void()>& after_batch = {});

    // Collective: the inner optimizer's state, as another site had it: first, then second moments of all tensors that have
    // them, in the model's order. On ranks that are no gateway both arguments are ignored. Returns XXH3-128 of what the
    // island then holds, as fp32.
    Hash128 set_moments(std::span<const float> values, std::int64_t optimizer_steps);
    std::int64_t moment_elements() const;

    // Why the gateway should plan its strands again, now that step took so long; empty to go on.
    std::string drift(const StepResult& step) { return strands_.add_step(step.seconds); }
    void plan_again() { strands_.plan_again(*island_); }

    // A rank that is not the gateway: executes orders until it is told to stop. Returns the exit code.
    int serve(RankTeam& team);

    // The tensors that an order to move parameters is about.
    static Island::SelectTensor selected(const RankOrder& order);

  private:
    Hash128 moments_hash();
    void dump_block(std::int64_t step, std::int64_t block);

    RunConfig config_;
    Corpus corpus_;
    BatchReader batches_;
    std::optional<BatchDump> dump_;
    std::optional<Corpus> validation_;
    std::optional<EvaluationWindows> windows_;
    StrandPlanner& strands_;
    std::unique_ptr<Island> island_;
};

}  // namespace atl
