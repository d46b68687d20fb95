// Gradients: where they lie, over which ranks they are summed, what the optimizer then updates.
//
// Gradients that the same ranks hold share buckets, filled in the order in which backward ends; each bucket is one
// all-reduce, behind its last writer. A packed gradient whose parts differ in their holders is reduced part by part.
// Under `zero` a matrix is reduce-scattered by rows instead; each holder updates its rows and gathers the others'.
// A sum over several pipeline stages comes after all others: its ranks end backward at different times.
#pragma once

#include "model/collectives.h"
#include "model/parameter_values.h"
#include "model/shared_rows.h"

namespace atl {

// Rows of a parameter that this rank updates.
struct ParameterUpdate {
    ValueId weight;
    ValueId gradient;
    std::optional<ValueId> first_moment;
    std::optional<ValueId> second_moment;
    bool decays = false;
    // Then gathered from all holders; none: they all update the same rows.
    std::optional<ValueId> gathered_weight;
    std::vector<Rank> holders;
};

// What an optimizer keeps beside the weights; one_of_hidden: of matrices inside layers, which are then updated one by
// one, the first moment alone.
enum class Moments { none, two, one_of_hidden };

class Gradients {
  public:
    // `builder` and `collectives` outlive this.
    Gradients(StepBuilder& builder, Collectives& collectives, const ModelShape& shape,
              const ParallelShape& parallel);

    // Adds the parameters' gradients; a bucket closes once it holds `bucket_bytes`.
    void add(ModelParts<Parameter>& parameters, std::int64_t bucket_bytes);
    void emit_reductions();
    // Into the block of the optimizer, which is open.
    void emit_late_reductions();

    // What of the reduced gradients this rank counts in the norm. If is_counted_once() the ranks' counts are to be
    // added up, otherwise each rank counts all there is.
    std::vector<ValueId> add_counted();
    bool is_counted_once() const;
    // Adds moments.
    std::vector<ParameterUpdate> add_updates(Moments moments);

  private:
    // One sum over ranks: of a bucket, or of rows of one gradient.
    struct Sum {
        ValueId partial;
        ValueId reduced;              // the same, or this rank's share of the rows
        std::optional<ValueId> also;  // added to `partial` first
        std::vector<Rank> holders;    // only one: nothing to do
        bool is_late = false;

        bool is_split() const { return reduced != partial; }
    };
    // Rows of a parameter and the sum that gives their gradient.
    struct Run {
        SharedRows shared;
        std::size_t sum = 0;
    };
    struct Entry {
        Parameter* parameter = nullptr;
        std::vector<Run> runs;  // one for all rows, if the gradient lies in a bucket
    };
    struct Bucket {
        std::vector<std::size_t> entries;
        std::int64_t elements = 0;
    };

    void add_whole_matrices(const Entry& entry, std::vector<ParameterUpdate>& updates);
    ValueId add_moment(const char* prefix, const PackedPieces& pieces, DType dtype);
    void close(Bucket& bucket, const std::vector<Rank>& holders, DType dtype);
    void add_apart(Entry& entry, DType dtype);
    void emit(const Sum& sum);
    bool spans_stages(const std::vector<Rank>& holders) const;
    bool has_both_ends(const Parameter& parameter) const;

    StepBuilder& builder_;
    Collectives& collectives_;
    const ParallelShape parallel_;
    const Rank rank_;
    const TensorCells cells_;
    std::string tied_ends_;  // the embedding, if it is tied to a head that another stage of this rank has
    std::vector<Entry> entries_;  // in the order in which backward ends
    std::vector<Sum> sums_;
    std::int32_t buckets_ = 0;
};

}  // namespace atl
