#include "rounds/owner_shares.h"

#include <algorithm>
#include <numeric>

namespace atl {

std::vector<double> owner_shares(std::span<const double> bytes_per_second, std::size_t members) {
    const std::size_t owners = bytes_per_second.size();
    std::vector<double> shares(owners, 1.0 / static_cast<double>(owners));
    const double slowest = *std::ranges::min_element(bytes_per_second);
    if (slowest <= 0 || members <= 2) return shares;
    const double total = std::accumulate(bytes_per_second.begin(), bytes_per_second.end(), 0.0);
    const double time = std::max(1 / slowest, static_cast<double>(owners + members - 2) / total);
    double sum = 0;
    for (std::size_t i = 0; i < owners; ++i) sum += shares[i] = std::max(0.0, time * bytes_per_second[i] - 1);
    if (sum <= 0) return std::vector(owners, 1.0 / static_cast<double>(owners));
    for (double& share : shares) share /= sum;
    return shares;
}

}  // namespace atl
