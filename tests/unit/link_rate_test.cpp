// Rates of links as people write them.
#include "cli/link_rate.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace atl::cli {
namespace {

TEST(LinkRate, is_a_number_with_a_decimal_unit_in_any_case_with_or_without_bit) {
    EXPECT_DOUBLE_EQ(parse_mbit_per_s("300M"), 300);
    EXPECT_DOUBLE_EQ(parse_mbit_per_s("1G"), 1000);
    EXPECT_DOUBLE_EQ(parse_mbit_per_s("3Gbit"), 3000);
    EXPECT_DOUBLE_EQ(parse_mbit_per_s("2.5gbit/s"), 2500);
    EXPECT_DOUBLE_EQ(parse_mbit_per_s("50000k"), 50);
}

TEST(LinkRate, refuses_what_is_no_rate_and_names_it) {
    for (const char* text : {"", "fast", "1", "1000", "-1G", "1GB", "1G2", "G", "0M", "1e3M", "999k", "101G", "1G "})
        try {
            parse_mbit_per_s(text);
            ADD_FAILURE() << text;
        } catch (const UserError& error) {
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
}

}  // namespace
}  // namespace atl::cli
