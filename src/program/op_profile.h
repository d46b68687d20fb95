// OpProfile: what was measured on one machine and its links: how long each op takes alone, and how much ops that run at
// once slow each other down. Planner and virtual executor predict steps from it.
//
// Ops are known by their key: kind, resource, and the shapes and attributes that their time depends on, so that a
// profile of one layer serves all layers like it. The fingerprint says for what a profile holds: one with another
// fingerprint is stale. Provenance says where it comes from, and decides nothing.
// Seconds. Errors: UserError naming the file and the field for text that is no profile. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/overlap_model.h"
#include "program/program.h"

namespace atl {

struct OpKey {
    OpKind kind = OpKind::add;
    Resource resource = Resource::compute;
    std::string shapes;  // "f32 [512,512] [1536,512] > [512,1536]"; collectives: "… group 2"
    auto operator<=>(const OpKey&) const = default;
};
OpKey key_of(const Program& program, const Op& op);

// What an op costs a step is a mean: slow turns are part of every step, and a step's time is a sum. Of the steps' means
// the middle one counts, so that one step in which the machine did something else doesn't.
struct OpTiming {
    double mean_seconds = 0;
    double median_seconds = 0;
    double quartile_range_seconds = 0;  // from the first quartile to the third
    std::int32_t samples = 0;
    bool operator==(const OpTiming&) const = default;
};
// [step]: samples, at least one in all.
OpTiming timing_of(const std::vector<std::vector<double>>& steps);

struct ProfileFingerprint {
    std::string model;  // its shape, as one line
    std::int32_t tp = 1;
    std::int32_t pp = 1;
    std::int32_t cp = 1;
    DType dtype = DType::f32;
    std::int64_t micro_batch_tokens = 0;
    std::int32_t threads = 1;
    std::string links;            // what joins the ranks, and any limit of its rate: "gloo 1gbit"
    std::string library_version;  // of what computes
    bool operator==(const ProfileFingerprint&) const = default;
};
// "tp is 4, the profile's 2"; empty if nothing known differs: an empty text and 0 threads are unknown.
std::string difference(const ProfileFingerprint& here, const ProfileFingerprint& profile);

struct ProfileProvenance {
    std::string host;
    std::string date;  // ISO 8601, UTC
    std::int32_t ranks = 1;
    bool operator==(const ProfileProvenance&) const = default;
};

struct OpProfile {
    ProfileFingerprint fingerprint;
    ProfileProvenance provenance;
    std::map<OpKey, OpTiming> ops;
    std::vector<PairSlowdown> slowdowns;

    bool operator==(const OpProfile&) const = default;
};

// [op]: mean seconds alone. Throws UserError that names the ops of which the profile has no time.
std::vector<double> op_seconds(const Program& program, const OpProfile& profile);

std::string to_json(const OpProfile& profile);
OpProfile op_profile_from_json(const std::string& text, const std::string& where);

}  // namespace atl
