// Control messages and stored rounds as bytes: MessagePack maps, described in FORMAT.md.
//
// decode_* check every field: type, range, order, size. Whatever is not exactly a message of this version throws
// CorruptDataError that names the field. Encoding then decoding gives an equal value. Stateless; any thread.
// Cost: some 10 µs for a view of a few sites.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "rounds/control.h"
#include "rounds/coordinator_state.h"

namespace atl {

inline constexpr int kControlVersion = 2;

std::vector<std::byte> encode(const Report& report);
std::vector<std::byte> encode(const View& view);
std::vector<std::byte> encode(const RoundRecord& record);
std::vector<std::byte> encode(const RoundPlan& plan);
std::vector<std::byte> encode(const RoundCost& cost);

Report decode_report(std::span<const std::byte> bytes);
View decode_view(std::span<const std::byte> bytes);
RoundRecord decode_round_record(std::span<const std::byte> bytes);
RoundPlan decode_round_plan(std::span<const std::byte> bytes);
RoundCost decode_round_cost(std::span<const std::byte> bytes);

// The view for people and monitoring, with what the last rounds cost each site: one JSON object, hashes in hex,
// standings and phases by name.
std::string status_json(const View& view, const RoundCosts& costs);

}  // namespace atl
