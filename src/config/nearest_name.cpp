#include "config/nearest_name.h"

#include <algorithm>

namespace atl {
namespace {

std::string_view last_part(std::string_view name) {
    return name.substr(name.rfind('.') + 1);  // npos + 1 == 0: the whole name
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
    // Rows of the usual table: the one before last allows transpositions.
    std::vector<int> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({replaced, previous[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, previous);
        std::swap(previous, row);
    }
    return previous[b.size()];
}

std::string nearest_name(std::string_view typed, const std::vector<std::string>& candidates) {
    const auto cost = [&](const std::string& candidate) {
        const int whole = edit_distance(typed, candidate);
        const int part = edit_distance(last_part(typed), last_part(candidate)) + 1;
        return std::min(whole, part);
    };
    const auto nearest =
        std::min_element(candidates.begin(), candidates.end(),
                         [&](const std::string& a, const std::string& b) { return cost(a) < cost(b); });
    return nearest == candidates.end() ? std::string() : *nearest;
}

}  // namespace atl
