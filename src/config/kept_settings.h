// What makes a run that run: the keys that must stay as they are when it goes on from a checkpoint. The shape of the
// model and what the sites keep for it between rounds have to fit the checkpoint's tensors; seed, context, sequences per
// step and end of text say which data a step sees. Everything else (rates, lengths, intervals, addresses, threads,
// layouts, paths) may change at a stop.
//
// Pure functions. A checkpoint carries kept_settings of the config it was written under.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace atl {

using KeptSettings = std::map<std::string, std::string>;  // "model.hidden" → the value as TOML

// What the files of data.train hold; whoever has read them adds it.
inline constexpr const char* kDataContents = "data.train (contents)";

KeptSettings kept_settings(const RunConfig& config);

// One line for each key that differs: "model.hidden = 64: the run has 32". A key that only one of the two knows is passed
// over. Sites are known by their numbers: more at the end of the list, or fewer, are no difference of `site`. Of
// outer.momentum, exchange.codec and exchange.error_feedback it only matters whether sites keep something for it.
std::vector<std::string> unkept_settings(const KeptSettings& run, const KeptSettings& now);

}  // namespace atl
