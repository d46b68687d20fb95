// The known name that somebody who typed another one most likely meant.
//
// Source: Damerau–Levenshtein distance (optimal string alignment). Cost: O(candidates × length²).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl {

int edit_distance(std::string_view a, std::string_view b);

// Of names with dots, the last part alone may match too: "train.lr" is near "optim.lr". Empty when there are
// no candidates; ties go to the first.
std::string nearest_name(std::string_view typed, const std::vector<std::string>& candidates);

}  // namespace atl
