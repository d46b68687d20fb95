#include "rounds/norm_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

// The lower of the two middle values: with an even number the judgement is the stricter one.
double lower_median(std::vector<double> values) {
    const auto middle = values.begin() + std::ptrdiff_t((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

double total_norm(const ContributionFacts& facts) {
    double squares = 0;
    for (const double norm : facts.tensor_norms) squares += norm * norm;
    return std::sqrt(squares);
}

std::vector<NormSuspect> implausible_norms(const std::vector<DeclaredNorm>& norms,
                                           const std::vector<double>& history, double factor) {
    std::vector<double> reference = history;
    const char* source = "recent rounds";
    if (norms.size() >= 3) {
        reference.clear();
        for (const DeclaredNorm& declared : norms) reference.push_back(declared.norm);
        source = "this round's contributions";
    } else if (history.size() < kNormHistoryNeeded) {
        return {};
    } else {
        factor *= kHistoryFactor;
    }
    const double median = lower_median(reference);
    std::vector<NormSuspect> suspects;
    if (!(median > 0)) return suspects;
    for (const DeclaredNorm& declared : norms) {
        if (declared.norm <= factor * median) continue;
        suspects.push_back(
            {declared.site, fmt::format("its norm {:.4g} is over {:g} times {:.4g}, the median of {}",
                                        declared.norm, factor, median, source)});
    }
    return suspects;
}

}  // namespace atl
