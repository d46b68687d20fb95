// `atoll bench exchange` as people and scripts call it: real processes on loopback, one JSON object.
#include <gtest/gtest.h>

#include "codec/codec.h"
#include "exchange/wire.h"
#include "support/atoll_commands.h"

namespace atl {
namespace {

class BenchExchangeTest : public testing::Test {
  protected:
    nlohmann::json bench(const std::string& arguments) { return atoll_.json("bench exchange --json " + arguments); }

    test::AtollCommands atoll_;
};

TEST_F(BenchExchangeTest, two_sites_send_exactly_the_payload_of_the_formula) {
    const nlohmann::json report = bench("--sites 2 --elements 300000 --codec fp16 --no-zstd --rounds 3");
    std::int64_t formula = 0;
    for (std::int64_t begin = 0; begin < 300'000; begin += 16 * 1024)
        formula +=
            packet_payload_bytes(codec_from_name("fp16"), std::min<std::int64_t>(16 * 1024, 300'000 - begin));
    EXPECT_EQ(report["payload_bytes"], formula);
    EXPECT_EQ(report["payload_bytes_received"], formula);
    EXPECT_GT(report["wire_bytes"].get<std::int64_t>(), formula);
    EXPECT_EQ(report["rounds"], 3);
    EXPECT_EQ(report["encrypted"], false);
    EXPECT_EQ(report["shared_memory"], true);
    EXPECT_EQ(report["sites_hold_equal_bits"], true);
    EXPECT_GT(report["peak_rss_bytes"].get<std::int64_t>(), 300'000 * 8);
    EXPECT_GT(report["seconds"].get<double>(), 0);
    EXPECT_LT(report["relative_error"].get<double>(), 5e-4);
    EXPECT_GT(report["relative_error"].get<double>(), 1e-5) << "fp16 does lose something";
}

TEST_F(BenchExchangeTest, sites_of_one_host_share_memory_only_where_that_is_wanted) {
    const std::string arguments = "--elements 300000 --codec identity --rounds 1 ";
    EXPECT_EQ(bench(arguments + "--no-shared-memory")["shared_memory"], false);
    EXPECT_EQ(bench(arguments + "--connections 2")["shared_memory"], false);
    EXPECT_EQ(bench(arguments + "--transport zmq")["shared_memory"], false);
}

TEST_F(BenchExchangeTest, three_sites_agree_over_every_transport) {
    for (const std::string kind : {"tcp --connections 2", "zmq", "gloo"}) {
        const nlohmann::json report = bench("--sites 3 --elements 300000 --rounds 2 --transport " + kind);
        EXPECT_EQ(report["sites_hold_equal_bits"], true) << kind;
        EXPECT_LT(report["relative_error"].get<double>(), 0.03) << kind;
    }
}

TEST_F(BenchExchangeTest, three_sites_agree_and_gloo_reduces_the_same_buffers_beside_them) {
    const nlohmann::json report =
        bench("--sites 3 --elements 50000 --codec identity --rounds 2 --idle 0.05 --compare gloo");
    EXPECT_EQ(report["sites_hold_equal_bits"], true);
    EXPECT_LT(report["relative_error"].get<double>(), 1e-6);
    EXPECT_GT(report["gloo_seconds"].get<double>(), 0);
    EXPECT_GT(report["ratio_to_gloo"].get<double>(), 0);
}

}  // namespace
}  // namespace atl
