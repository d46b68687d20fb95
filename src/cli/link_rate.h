// Rates of links as people write them: "300M", "1G", "3Gbit", "2.5Gbit/s". Upper or lower case, decimal powers, bits
// per second, from 1 Mbit/s to 100 Gbit/s. Pure.
#pragma once

#include <string>

namespace atl::cli {

double parse_mbit_per_s(const std::string& text);  // throws UserError

}  // namespace atl::cli
