// What a run reports: exact text for the formats that other programs read, and human numbers at their edges.
#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/check.h"
#include "core/error.h"
#include "metrics/progress.h"
#include "metrics/summary.h"
#include "metrics/tensorboard.h"
#include "support/fake_clock.h"
#include "support/fault_file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

TEST(MetricRegistry, counts_from_many_threads_and_keeps_one_object_per_name) {
    MetricRegistry registry;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&registry] {
                for (int n = 0; n < 1000; ++n) registry.counter("tokens_total", "tokens").add(2);
            });
    }
    EXPECT_EQ(registry.counter("tokens_total", "").value(), 8000);
    registry.gauge("train_loss", "nats").set(2.5);
    const auto samples = registry.samples();
    ASSERT_EQ(samples.size(), 2u);
    EXPECT_EQ(samples[0].name, "tokens_total");
    EXPECT_EQ(samples[0].help, "tokens");
    EXPECT_EQ(samples[1].value, 2.5);
}

TEST(MetricRegistry, refuses_names_of_two_kinds_or_outside_snake_case) {
    MetricRegistry registry;
    registry.counter("rounds", "");
    EXPECT_THROW(registry.gauge("rounds", ""), CheckError);
    for (const char* name : {"", "Loss", "train-loss", "1st"})
        EXPECT_THROW(registry.gauge(name, ""), CheckError);
}

TEST(Prometheus, text_has_help_type_labels_and_escapes) {
    MetricRegistry registry;
    registry.counter("payload_bytes_sent", "bytes of packets").add(12);
    registry.gauge("train_loss", "nats\nper token").set(NAN);
    EXPECT_EQ(prometheus_text(registry.samples(), {{"run", "a\"b\\c"}, {"site", "x"}}),
              "# HELP atoll_payload_bytes_sent bytes of packets\n"
              "# TYPE atoll_payload_bytes_sent counter\n"
              "atoll_payload_bytes_sent{run=\"a\\\"b\\\\c\",site=\"x\"} 12\n"
              "# HELP atoll_train_loss nats\\nper token\n"
              "# TYPE atoll_train_loss gauge\n"
              "atoll_train_loss{run=\"a\\\"b\\\\c\",site=\"x\"} NaN\n");
    EXPECT_EQ(prometheus_text({{"x", "h", false, 0.5}}, {}),
              "# HELP atoll_x h\n# TYPE atoll_x gauge\natoll_x 0.5\n");
}

TEST(MetricsLog, appends_one_object_per_line_also_after_a_restart) {
    const test::TemporaryDirectory directory;
    const auto files = make_system_file_system();
    const auto path = directory.path() / "metrics" / "a.jsonl";
    MetricsLog(*files, path).write({{"step", std::int64_t{10}}, {"loss", 0.1}, {"site", std::string("a")}});
    MetricsLog(*files, path).write({{"step", std::int64_t{20}}, {"loss", INFINITY}, {"skipped", true}});
    EXPECT_EQ(files->read_text(path),
              "{\"step\":10,\"loss\":0.1,\"site\":\"a\"}\n{\"step\":20,\"loss\":null,\"skipped\":true}\n");
}

TEST(MetricsLog, a_full_disk_is_an_error) {
    const test::TemporaryDirectory directory;
    test::FaultFileSystem files;
    MetricsLog log(files, directory.path() / "a.jsonl");
    files.limit_bytes(3);
    EXPECT_THROW(log.write({{"step", std::int64_t{1}}}), StorageError);
}

TEST(Summary, holds_every_key_and_null_for_what_was_not_measured) {
    Summary summary;
    summary.parameters = 123;
    summary.train_loss = 2.25;
    summary.parameters_blake2b = "ab";
    summary.more = {{"sites", std::int64_t{2}}};
    const auto json = nlohmann::json::parse(summary_json(summary));
    for (const char* key :
         {"parameters", "steps", "rounds", "tokens", "train_loss", "val_loss", "tokens_per_second",
          "model_flops_utilization", "compute_utilization", "payload_bytes_sent", "wire_bytes_sent",
          "wire_bytes_received", "exchange_seconds", "peak_rss_bytes", "parameters_blake2b", "sites"})
        EXPECT_TRUE(json.contains(key)) << key;
    EXPECT_EQ(json.size(), 16u);
    EXPECT_EQ(json["train_loss"], 2.25);
    EXPECT_TRUE(json["val_loss"].is_null());

    const test::TemporaryDirectory directory;
    const auto files = make_system_file_system();
    write_summary(*files, directory.path() / "summary.json", summary);
    EXPECT_EQ(nlohmann::json::parse(files->read_text(directory.path() / "summary.json")), json);
}

TEST(Progress, line_shows_what_is_known_and_counts_the_eta_from_this_process_start) {
    EXPECT_EQ(
        progress_line({.step = 120,
                       .steps = 2000,
                       .elapsed_seconds = 10,
                       .first_step = 100,
                       .loss = 2.34561,
                       .gradient_norm = 0.8712,
                       .lr = 3e-4,
                       .tokens_per_second = 12345,
                       .model_flops_utilization = 0.614,
                       .memory_bytes = 812.4e6}),
        "step  120/2000   6.0% | loss 2.3456 | grad 0.871 | lr 3.00e-04 | 12.3k tok/s | mfu 61% | 812 MB "
        "| eta 15m40s");
    EXPECT_EQ(progress_line({.step = 5, .steps = 5, .elapsed_seconds = 1}), "step 5/5 100.0% | eta 0.00s");
    EXPECT_EQ(progress_line({.step = 5, .steps = 10, .first_step = 5}), "step  5/10  50.0%");
}

TEST(HumanNumbers, keep_three_digits_and_change_prefix_at_a_thousand) {
    EXPECT_EQ(human_count(0), "0");
    EXPECT_EQ(human_count(7), "7");
    EXPECT_EQ(human_count(0.5), "0.50");
    EXPECT_EQ(human_count(999.4), "999");
    EXPECT_EQ(human_count(999.6), "1.00k");
    EXPECT_EQ(human_count(1.24e9), "1.24B");
    EXPECT_EQ(human_bytes(12), "12 B");
    EXPECT_EQ(human_bytes(1536), "1.54 KB");
    EXPECT_EQ(human_bytes(99.94e6), "99.9 MB");
    EXPECT_EQ(human_bytes(99.96e6), "100 MB");
    EXPECT_EQ(human_bytes(3e9), "3.00 GB");
    EXPECT_EQ(human_duration(0.418), "0.42s");
    EXPECT_EQ(human_duration(9.999), "10s");
    EXPECT_EQ(human_duration(59.6), "1m00s");
    EXPECT_EQ(human_duration(184), "3m04s");
    EXPECT_EQ(human_duration(7500), "2h05m");
    EXPECT_EQ(human_duration(400000), "4d15h");
}

TEST(Memory, the_peak_covers_a_block_that_was_touched) {
    const std::int64_t before = current_rss_bytes();
    EXPECT_GT(before, 0);
    {
        std::vector<char> block(64 << 20, 1);
        EXPECT_EQ(block[block.size() / 2], 1);
    }
    EXPECT_GE(peak_rss_bytes(), before + (60 << 20));
}

TEST(Crc32c, matches_the_published_vectors) {
    // RFC 3720 B.4: 32 bytes of zeros, of ones, and counting up; and the usual check string.
    const std::vector<std::byte> zeros(32), ones(32, std::byte{0xff});
    std::vector<std::byte> counting(32);
    for (std::size_t i = 0; i < 32; ++i) counting[i] = static_cast<std::byte>(i);
    EXPECT_EQ(crc32c(zeros), 0x8a9136aau);
    EXPECT_EQ(crc32c(ones), 0x62a8ab43u);
    EXPECT_EQ(crc32c(counting), 0x46dd794eu);
    EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xe3069283u);
}

TEST(TensorBoard, writes_framed_protobuf_events) {
    const test::TemporaryDirectory directory;
    const auto files = make_system_file_system();
    test::FakeClock clock;
    clock.advance(std::chrono::milliseconds(1500));
    TensorBoardWriter(*files, directory.path(), "a", clock).scalar("loss", 300, 2.5);
    const auto paths = files->list(directory.path());
    ASSERT_EQ(paths.size(), 1u);
    EXPECT_EQ(paths[0].filename(), "events.out.tfevents.1.a");
    const std::string text = files->read_text(paths[0]);

    // First record: length 24, wall time 1.5 s, version "brain.Event:2".
    const std::string wall_time = std::string("\x09\0\0\0\0\0\0\xf8\x3f", 9);
    const std::string version = wall_time +
                                "\x1a\x0d"
                                "brain.Event:2";
    ASSERT_GE(text.size(), 16 + version.size());
    EXPECT_EQ(text.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
    EXPECT_EQ(text.substr(12, 24), version);
    // Second: step 300 as a varint, summary { value { tag: "loss", simple_value: 2.5 } }.
    const std::string scalar = wall_time + "\x10\xac\x02" + "\x2a\x0d" + "\x0a\x0b" + "\x0a\x04loss" +
                               std::string("\x15\0\0\x20\x40", 5);
    const std::string second = text.substr(16 + 24);
    ASSERT_EQ(second.size(), 16 + scalar.size());
    EXPECT_EQ(second.substr(12, scalar.size()), scalar);

    std::uint32_t stored = 0;
    std::memcpy(&stored, second.data() + 12 + scalar.size(), 4);
    const std::uint32_t crc = crc32c(std::as_bytes(std::span(scalar)));
    EXPECT_EQ(stored, ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

}  // namespace
}  // namespace atl
