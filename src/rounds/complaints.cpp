#include "rounds/complaints.h"

#include <algorithm>
#include <bit>
#include <set>

namespace atl {
namespace {

constexpr std::size_t kExactSites = 16;

double weight(const std::map<SiteId, double>& tokens, SiteId site) {
    const auto found = tokens.find(site);
    return found == tokens.end() ? 0 : found->second;
}

std::vector<SiteId> exact_cover(const std::vector<SiteId>& sites, const std::vector<ComplaintEdge>& edges,
                                const std::map<SiteId, double>& tokens) {
    std::vector<SiteId> best;
    double best_weight = 0;
    bool found = false;
    for (std::uint32_t subset = 0; subset < (1U << sites.size()); ++subset) {
        std::vector<SiteId> chosen;
        double chosen_weight = 0;
        for (std::size_t i = 0; i < sites.size(); ++i) {
            if ((subset >> i & 1U) == 0) continue;
            chosen.push_back(sites[i]);
            chosen_weight += weight(tokens, sites[i]);
        }
        const auto is_chosen = [&](SiteId site) {
            return std::binary_search(chosen.begin(), chosen.end(), site);
        };
        const bool covers = std::all_of(edges.begin(), edges.end(), [&](const ComplaintEdge& edge) {
            return is_chosen(edge.first) || is_chosen(edge.second);
        });
        if (!covers) continue;
        const bool better =
            !found || chosen.size() < best.size() ||
            (chosen.size() == best.size() &&
             (chosen_weight < best_weight || (chosen_weight == best_weight && chosen > best)));
        if (!better) continue;
        best = chosen;
        best_weight = chosen_weight;
        found = true;
    }
    return best;
}

std::vector<SiteId> greedy_cover(std::vector<ComplaintEdge> edges, const std::map<SiteId, double>& tokens) {
    std::vector<SiteId> chosen;
    while (!edges.empty()) {
        std::map<SiteId, int> degrees;
        for (const auto& [accuser, accused] : edges) {
            ++degrees[accuser];
            ++degrees[accused];
        }
        const auto worst =
            std::max_element(degrees.begin(), degrees.end(), [&](const auto& a, const auto& b) {
                if (a.second != b.second) return a.second < b.second;
                const double a_weight = weight(tokens, a.first);
                const double b_weight = weight(tokens, b.first);
                return a_weight != b_weight ? a_weight > b_weight : a.first < b.first;
            });
        const SiteId site = worst->first;
        chosen.push_back(site);
        std::erase_if(edges,
                      [&](const ComplaintEdge& edge) { return edge.first == site || edge.second == site; });
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

}  // namespace

std::vector<SiteId> smallest_covering_set(const std::vector<ComplaintEdge>& edges,
                                          const std::map<SiteId, double>& tokens) {
    std::set<SiteId> involved;
    for (const auto& [accuser, accused] : edges) {
        involved.insert(accuser);
        involved.insert(accused);
    }
    const std::vector<SiteId> sites(involved.begin(), involved.end());
    return sites.size() <= kExactSites ? exact_cover(sites, edges, tokens) : greedy_cover(edges, tokens);
}

}  // namespace atl
