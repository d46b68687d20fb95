// Checkpoints on disk: what one rank of one site writes, and how a whole site's state is found and read back
// under any layout. The byte format is in FORMAT.md.
//
//   checkpoints/step_N/site_NAME/rank_R/{manifest.json, tensors-HASH.bin}
//
// Names of tensors: "parameters/NAME", "moment1/NAME", "moment2/NAME" (local values of this site),
// "anchor/NAME" (θ_outer), "outer_momentum/NAME", "residual/NAME", with NAME the logical tensor's; "bytes/…"
// for anything opaque (a pending fragment's packets). Shapes are logical, values row-major within the box.
//
// Atomic: a rank's part appears whole or not at all, also when it replaces an older part of the same step:
// tensors go to a temporary file, which is synced and renamed to a name made of its content's hash, then
// manifest.json is replaced by rename. A kill or a full disk at any point leaves all earlier checkpoints, and
// the part being replaced, as they were. A site is complete when the parts of all its ranks are there and
// agree on run, step, round and incarnation: ranks need no barrier.
//
// Threads: an object is used by one thread at a time; sites and ranks may write the same step at once.
// Errors: StorageError (the disk), CorruptDataError naming file and tensor (bytes differ from their hash).
// Cost: writing copies nothing; one BLAKE2b pass (about 1 GB/s). Reading any box of a tensor reads and checks
// every stored piece that overlaps it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/buffer_view.h"
#include "core/file_system.h"
#include "core/ids.h"
#include "layout/box.h"

namespace atl {

struct CheckpointPart {
    std::string site;  // letters, digits, '_', '-', '.'
    Rank rank{0};
    std::int32_t ranks = 1;  // of the whole island
};

struct CheckpointMetadata {
    std::string run_id;
    Step step;                     // inner steps done
    Round round;                   // the round that the next step belongs to
    std::int64_t incarnation = 0;  // the writing site's; equal on its ranks
    std::uint64_t seed = 0;
    std::int64_t optimizer_step = 0;  // of the inner optimizer: differs from `step` by skipped steps
    std::string model = "{}";         // JSON object: the model's configuration
    std::string data_cursor = "{}";   // JSON object: where this site stands in its blocks
    std::string extra = "{}";         // JSON object: whatever else the writer needs (a round plan, …)
};

class CheckpointWriter {
  public:
    // `step_directory`: …/checkpoints/step_N; made if missing.
    CheckpointWriter(FileSystem& files, const std::filesystem::path& step_directory,
                     const CheckpointPart& part, const CheckpointMetadata& metadata);
    ~CheckpointWriter();  // without commit(): nothing of this part remains but what was there before
    CheckpointWriter(const CheckpointWriter&) = delete;
    CheckpointWriter& operator=(const CheckpointWriter&) = delete;

    // Streams the values to disk at once; the view isn't needed afterwards. `box` of a tensor of
    // `logical_shape`; several boxes of one tensor may come from one rank.
    void add(const std::string& name, const Shape& logical_shape, const Box& box, const BufferView& values);
    void add(const std::string& name, const Shape& logical_shape, const BufferView& values);  // whole
    void add_bytes(const std::string& name, std::span<const std::byte> bytes);
    void commit();  // durable when it returns

  private:
    struct State;
    std::unique_ptr<State> state_;
};

struct TensorInfo {
    std::string name;
    Shape shape;  // logical
    DType dtype = DType::f32;
};

// One complete site of one checkpoint.
class CheckpointReader {
  public:
    // `path`: a site's directory, or a step's (its first complete site), or a directory of steps (the newest with
    // a complete site), or a run's directory. A path that holds no checkpoint is a UserError; if none of those it holds is
    // complete, a CorruptDataError says what is wrong with each.
    CheckpointReader(const FileSystem& files, const std::filesystem::path& path);
    ~CheckpointReader();
    CheckpointReader(const CheckpointReader&) = delete;
    CheckpointReader& operator=(const CheckpointReader&) = delete;

    const std::filesystem::path& site_directory() const;
    // What would have been taken before it, were it complete, each with what is wrong: tell people.
    const std::vector<std::string>& passed_over() const;
    const CheckpointMetadata& metadata() const { return metadata(Rank(0)); }
    const CheckpointMetadata& metadata(Rank rank) const;
    std::int32_t ranks() const;

    const std::vector<TensorInfo>& tensors() const;                     // sorted by name
    std::vector<TensorInfo> section(const std::string& section) const;  // names without "SECTION/"
    bool contains(const std::string& name) const;
    const TensorInfo& tensor(const std::string& name) const;  // CorruptDataError when missing

    // Whole tensors, or the box of one; f32 and f64 convert into each other. Elements that no stored piece
    // covers are a CorruptDataError.
    void read(const std::string& name, std::span<float> values) const;
    void read(const std::string& name, std::span<double> values) const;
    void read(const std::string& name, const Box& box, std::span<float> values) const;
    void read(const std::string& name, const Box& box, std::span<double> values) const;
    std::vector<std::byte> read_bytes(const std::string& name) const;
    void verify() const;  // reads everything once

  private:
    struct State;
    std::unique_ptr<State> state_;
};

struct FoundSite {
    std::string name;
    std::filesystem::path path;
    std::string problem;  // why the site is not complete; empty when it is
    bool complete() const { return problem.empty(); }
};

struct FoundCheckpoint {
    std::filesystem::path path;
    Step step;
    std::vector<FoundSite> sites;  // sorted by name

    bool complete_for(const std::string& site) const;
};

std::filesystem::path checkpoint_directory(const std::filesystem::path& checkpoints, Step step);

// Newest step first; empty when `checkpoints` doesn't exist. Looks at manifests and file sizes, not at hashes.
std::vector<FoundCheckpoint> find_checkpoints(const FileSystem& files,
                                              const std::filesystem::path& checkpoints);

// Removes the site's parts of all steps older than its `keep` (at least 2) newest complete ones, and what
// killed writers left there. Steps newer than the newest complete one stay.
void prune_checkpoints(FileSystem& files, const std::filesystem::path& checkpoints, const std::string& site,
                       int keep);

// `parameters_blake2b` of a run's summary: BLAKE2b-256 over the tensors sorted by name, row-major
// little-endian f32, no padding; a tied tensor stands once.
std::string parameters_blake2b(const std::map<std::string, std::span<const float>>& tensors);

}  // namespace atl
