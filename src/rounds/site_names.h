// What messages call sites: their names in the configuration; a number where it has none for it.
//
// Pure. `names` is by SiteId.
#pragma once

#include <string>
#include <vector>

#include "core/ids.h"

namespace atl {

std::string site_name(const std::vector<std::string>& names, SiteId site);
std::string site_list(const std::vector<std::string>& names,
                      const std::vector<SiteId>& sites);  // "north, south"

}  // namespace atl
