#include "rounds/site_names.h"

#include <fmt/format.h>

namespace atl {

std::string site_name(const std::vector<std::string>& names, SiteId site) {
    const bool known = site.value() >= 0 && std::size_t(site.value()) < names.size();
    return known ? names[std::size_t(site.value())] : fmt::format("{}", site);
}

std::string site_list(const std::vector<std::string>& names, const std::vector<SiteId>& sites) {
    std::string list;
    for (const SiteId site : sites) {
        if (!list.empty()) list += ", ";
        list += site_name(names, site);
    }
    return list;
}

}  // namespace atl
