#include "cli/link_rate.h"

#include <fmt/format.h>

#include <cctype>
#include <regex>

#include "core/error.h"

namespace atl::cli {

double parse_mbit_per_s(const std::string& text) {
    constexpr double kLeast = 1, kMost = 100e3;
    static const std::regex pattern(R"((\d{1,9}(?:\.\d{1,9})?)([KMG])(?:bit(?:/s)?)?)", std::regex::icase);
    std::smatch parts;
    double mbit = 0;
    if (std::regex_match(text, parts, pattern)) {
        const char unit = static_cast<char>(std::toupper(static_cast<unsigned char>(parts[2].str()[0])));
        mbit = std::stod(parts[1]) * (unit == 'K' ? 1e-3 : unit == 'M' ? 1 : 1e3);
    }
    if (mbit < kLeast || mbit > kMost)
        throw UserError(fmt::format(
            "--link {}: not a rate from 1M to 100G bits per second, such as 300M, 1G or 3Gbit",
            text));
    return mbit;
}

}  // namespace atl::cli
