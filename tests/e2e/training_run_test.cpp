// Whole runs from one TOML file: sites agree to the bit, stopping is the same as not stopping, and a run of one site
// or of single steps is what it should be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numbers>
#include <set>

#include "data/micro_batch.h"
#include "core/file_system.h"
#include "support/training_run.h"

namespace atl::test {
namespace {

struct DumpedBatch {
    std::int64_t step = 0;
    std::int64_t block = 0;
    std::int64_t micro_batch = 0;
    MicroBatch batch;
};

// Of sequences of 32 tokens; layout in src/data/README.md.
std::vector<DumpedBatch> read_dump(const std::filesystem::path& path, std::int64_t sequences) {
    const std::string bytes = make_system_file_system()->read_text(path);
    const char* next = bytes.data() + 32;
    const auto take = [&next](void* to, std::size_t count) {
        std::memcpy(to, next, count);
        next += count;
    };
    std::vector<DumpedBatch> batches;
    while (next < bytes.data() + bytes.size()) {
        DumpedBatch record{.batch = MicroBatch(32 * sequences)};
        for (auto* number : {&record.step, &record.block, &record.micro_batch}) take(number, sizeof(*number));
        for (auto* values :
             {&record.batch.tokens, &record.batch.targets, &record.batch.positions, &record.batch.starts})
            take(values->data(), values->size() * sizeof(std::int32_t));
        batches.push_back(std::move(record));
    }
    return batches;
}

class TrainingRun : public testing::Test {
  protected:
    TrainingRuns runs_;
};

TEST_F(TrainingRun, two_sites_end_with_equal_parameters_and_a_full_summary) {
    const auto outcome = runs_.run("two", runs_.write_config({"east", "west"}, {}));
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    const auto& sites = outcome.summary.at("sites");
    EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"));
    EXPECT_EQ(outcome.hash().size(), 64u);
    EXPECT_EQ(outcome.summary.at("steps"), 12);
    EXPECT_EQ(outcome.summary.at("rounds"), 3);
    EXPECT_EQ(outcome.summary.at("tokens"), 2 * 12 * 4 * 32);
    for (const char* site : {"east", "west"}) EXPECT_EQ(sites.at(site).at("tokens"), 12 * 4 * 32);
    EXPECT_EQ(runs_.round_sums("two", "east", "payload_bytes_sent"), sites.at("east").at("payload_bytes_sent"))
        << "a round's line is of that round";
    for (const char* site : {"east", "west"})
        EXPECT_LE(sites.at(site).at("model_flops_utilization"), 1.0) << "also where the machine was busy at the start";
    EXPECT_GT(outcome.summary.at("payload_bytes_sent"), 0);
    EXPECT_GT(outcome.summary.at("val_loss"), 0.0);
    const auto losses = runs_.losses("two", "east");
    EXPECT_LT(losses.at(12), losses.at(1));

    // Ends of documents have a loss, but are no bytes.
    const auto data = runs_.directory("data");
    ASSERT_TRUE(runs_.call({"eval", (runs_.directory("two") / "checkpoints").string(), "--data",
                            (data / "validation_*.bin").string(), "--json"},
                           "eval")
                    .ok())
        << runs_.output("eval");
    const auto held_out = nlohmann::json::parse(runs_.output("eval"));
    const auto corpus = nlohmann::json::parse(make_system_file_system()->read_text(data / "corpus.json"));
    EXPECT_NEAR(held_out.at("bits_per_byte").get<double>() * std::numbers::ln2 *
                    corpus.at("validation").at("bytes").get<double>(),
                held_out.at("loss").get<double>() * held_out.at("tokens").get<double>(), 1e-6);
}

TEST_F(TrainingRun, three_sites_agree_through_owners) {
    const auto outcome = runs_.run("three", runs_.write_config({"a", "b", "c"}, {{"train.steps", "8"}}));
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("rounds"), 2);
}

TEST_F(TrainingRun, two_sites_agree_and_learn_with_every_narrow_codec) {
    std::map<std::string, std::int64_t> bytes;
    for (const char* codec : {"int8", "int4", "e3m0", "sign", "top_k"}) {
        const auto config = runs_.write_config(
            {"east", "west"}, {{"exchange.codec", fmt::format("\"{}\"", codec)}, {"exchange.zstd", "false"}});
        const auto outcome = runs_.run(codec, config);
        ASSERT_TRUE(outcome.status.ok()) << outcome.log;
        const auto& sites = outcome.summary.at("sites");
        EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"))
            << codec;
        bytes[codec] = outcome.summary.at("payload_bytes_sent");
        const auto losses = runs_.losses(codec, "east");
        EXPECT_LT(losses.at(12), losses.at(1)) << codec;
    }
    EXPECT_LT(bytes["int4"], 0.56 * bytes["int8"]);
    EXPECT_LT(bytes["e3m0"], bytes["int4"]);
    EXPECT_LT(bytes["sign"], 0.3 * bytes["e3m0"]);
    EXPECT_LT(bytes["top_k"], 0.3 * bytes["sign"]);
}

TEST_F(TrainingRun, residuals_are_part_of_a_checkpoint) {
    const auto config = runs_.write_config({"east", "west"}, {{"exchange.codec", "\"top_k\""}});
    const auto whole = runs_.run("whole", config);
    ASSERT_TRUE(whole.status.ok()) << whole.log;
    std::int64_t sent_before = 0;
    for (const char* stop : {"8", "10"}) {
        const auto part = runs_.run("parts", config, {"--stop-at", stop});
        ASSERT_TRUE(part.status.ok()) << part.log;
        sent_before = part.summary.at("payload_bytes_sent");
    }
    const auto last = runs_.run("parts", config);
    ASSERT_TRUE(last.status.ok()) << last.log;
    EXPECT_EQ(last.summary.at("tokens"), whole.summary.at("tokens"));
    EXPECT_EQ(last.summary.at("sites").at("east").at("tokens"), 12 * 4 * 32);
    EXPECT_GT(sent_before, whole.summary.at("payload_bytes_sent").get<std::int64_t>() / 2) << "of two rounds in three";
    EXPECT_GT(last.summary.at("payload_bytes_sent"), sent_before) << "of all parts of the run, and not of the last";
    EXPECT_EQ(last.hash(), whole.hash());
}

TEST_F(TrainingRun, one_site_stopped_inside_a_round_and_resumed_twice_equals_one_that_never_stopped) {
    const auto config = runs_.write_config({"solo"}, {});
    const auto whole = runs_.run("whole", config);
    ASSERT_TRUE(whole.status.ok()) << whole.log;
    for (const char* stop : {"3", "8", "10"}) {
        const auto part = runs_.run("parts", config, {"--stop-at", stop});
        ASSERT_TRUE(part.status.ok()) << part.log;
        EXPECT_EQ(part.summary.at("steps"), std::stoi(stop)) << part.log;
    }
    const auto last = runs_.run("parts", config);
    ASSERT_TRUE(last.status.ok()) << last.log;
    EXPECT_EQ(last.hash(), whole.hash());
    runs_.expect_same_losses("whole", "parts", "solo");
}

TEST_F(TrainingRun, two_sites_with_int8_stopped_inside_a_round_and_resumed_equal_ones_that_never_stopped) {
    const auto config = runs_.write_config({"east", "west"}, {{"exchange.codec", "\"int8\""}});
    const auto whole = runs_.run("whole", config);
    ASSERT_TRUE(whole.status.ok()) << whole.log;
    for (const char* stop : {"4", "6"}) {
        const auto part = runs_.run("parts", config, {"--stop-at", stop});
        ASSERT_TRUE(part.status.ok()) << part.log;
    }
    const auto last = runs_.run("parts", config);
    ASSERT_TRUE(last.status.ok()) << last.log;
    EXPECT_EQ(last.hash(), whole.hash());
    runs_.expect_same_losses("whole", "parts", "east");
    runs_.expect_same_losses("whole", "parts", "west");
}

TEST_F(TrainingRun, rounds_become_longer_on_every_site_at_once_when_told_and_stay_so_after_a_stop) {
    const auto config = runs_.write_config(
        {"east", "west"}, {{"train.steps", "600"}, {"optim.lr", "1e-3"}, {"monitor.eval_interval", "0"}});
    ChildProcess process = runs_.start("set", config, {"--stop-at", "400"});
    ASSERT_TRUE(runs_.wait_for_text("set", "round 0 committed")) << runs_.output("set");
    const auto directory = runs_.directory("set").string();
    EXPECT_EQ(runs_.call({"set", directory, "outer.inner_steps=64", "model.layers=9"}, "wrong").code, 2);
    EXPECT_TRUE(runs_.call({"set", directory, "outer.inner_steps=20"}, "right").ok())
        << runs_.output("right");
    const auto stopped = runs_.finish("set", process);
    ASSERT_TRUE(stopped.status.ok()) << stopped.log;
    EXPECT_EQ(runs_.call({"set", directory, "outer.inner_steps=64"}, "late").code, 1)
        << "nobody listens any more: " << runs_.output("late");
    const auto outcome = runs_.run("set", config);
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;

    const auto& sites = outcome.summary.at("sites");
    EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"));
    const auto ends = runs_.round_ends("set", "east");
    EXPECT_EQ(ends, runs_.round_ends("set", "west"));
    std::set<std::int64_t> lengths;
    std::int64_t before = 0;
    bool longer = false;
    for (const auto& [round, end] : ends) {
        longer = longer || end - before == 20;
        const bool last = end == 600;
        EXPECT_TRUE(last || end - before == (longer ? 20 : 4)) << "round " << round << " ends at " << end;
        lengths.insert(end - before);
        before = end;
    }
    EXPECT_EQ(before, 600);
    EXPECT_TRUE(lengths.contains(4) && lengths.contains(20)) << runs_.output("right");
    EXPECT_NE(outcome.log.find("outer.inner_steps = 20, as told before"), std::string::npos);
}

TEST_F(TrainingRun, rounds_whose_length_is_left_to_the_tuner_are_alike_on_all_sites_and_explained) {
    const auto config =
        runs_.write_config({"east", "west"}, {{"outer.inner_steps", "\"auto\""}, {"train.steps", "200"}});
    const auto outcome = runs_.run("tuned", config);
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    const auto& sites = outcome.summary.at("sites");
    EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"));
    const auto ends = runs_.round_ends("tuned", "east");
    EXPECT_EQ(ends, runs_.round_ends("tuned", "west"));
    EXPECT_EQ(ends.at(0), 10) << "the shortest round comes first";
    EXPECT_EQ(ends.rbegin()->second, 200);

    ASSERT_TRUE(runs_.call({"tune", runs_.directory("tuned").string(), "--json"}, "tune").ok())
        << runs_.output("tune");
    const auto tuned = nlohmann::json::parse(runs_.output("tune"));
    EXPECT_EQ(tuned.at("sites"), 2);
    EXPECT_GT(tuned.at("step_seconds"), 0.0);
    EXPECT_GT(tuned.at("payload_bytes"), 0.0);
    EXPECT_TRUE(tuned.at("reason").get<std::string>().starts_with("H = ")) << tuned.at("reason");
    EXPECT_FALSE(tuned.at("curve").empty());
    EXPECT_FALSE(tuned.at("measured").empty());
}

// Two fragments, exchanged beside two inner steps each: starts after steps 2, 5, 8 and so on of rounds of six.
std::map<std::string, std::string> streaming() {
    return {{"train.steps", "18"},     {"outer.inner_steps", "6"}, {"outer.fragments", "2"},
            {"outer.overlap_steps", "2"}, {"outer.alpha", "0.5"},     {"exchange.codec", "\"int8\""}};
}

TEST_F(TrainingRun, two_sites_stream_fragments_beside_their_steps_and_agree) {
    const auto outcome = runs_.run("streaming", runs_.write_config({"east", "west"}, streaming()));
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    const auto& sites = outcome.summary.at("sites");
    EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"));
    EXPECT_EQ(outcome.summary.at("rounds"), 3);
    EXPECT_EQ(outcome.summary.at("tokens"), 2 * 18 * 4 * 32);
    const auto losses = runs_.losses("streaming", "east");
    EXPECT_LT(losses.at(18), losses.at(1));
}

// The slower site does half the steps and counts for half: blocks of 6 and 3 steps, tokens of 9 steps a round.
TEST_F(TrainingRun, a_site_with_fewer_inner_steps_weighs_as_much_less) {
    const auto config = runs_.write_config({"fast", "slow"}, {{"outer.inner_steps", "6"}, {"train.steps", "12"}});
    const auto outcome = runs_.run("unequal", config, {"--set", "site.slow.inner_steps=3"});
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("rounds"), 2);
    EXPECT_EQ(outcome.summary.at("tokens"), 2 * 9 * 4 * 32);
    EXPECT_EQ(runs_.losses("unequal", "fast").size(), 12u);
    EXPECT_EQ(runs_.losses("unequal", "slow").size(), 6u);
}

TEST_F(TrainingRun, three_sites_stream_fragments_through_owners) {
    const auto outcome = runs_.run("streaming", runs_.write_config({"a", "b", "c"}, streaming()));
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("rounds"), 3);
    const auto& sites = outcome.summary.at("sites");
    for (const char* other : {"b", "c"})
        EXPECT_EQ(sites.at("a").at("parameters_blake2b"), sites.at(other).at("parameters_blake2b"));
    const auto losses = runs_.losses("streaming", "a");
    EXPECT_LT(losses.rbegin()->second, losses.begin()->second);
}

// Stops where a fragment starts (7 = 6 + 3 − 2), while it is pending (8), where it is applied (9) and where nothing is
// under way (6, a round's end); a codec with residuals, and one whose packets are views of Δ.
TEST_F(TrainingRun, stopped_with_a_fragment_pending_and_resumed_equals_one_that_never_stopped) {
    for (const char* codec : {"\"top_k\"", "\"identity\""}) {
        auto changes = streaming();
        changes["exchange.codec"] = codec;
        changes["run.name"] = std::string("\"test-") + (codec + 1);
        const auto config = runs_.write_config({"east", "west"}, changes);
        const std::string whole_name = std::string("whole-") + codec[1];
        const std::string parts_name = std::string("parts-") + codec[1];
        const auto whole = runs_.run(whole_name, config);
        ASSERT_TRUE(whole.status.ok()) << whole.log;
        for (const char* stop : {"6", "7", "8", "9", "14"}) {
            const auto part = runs_.run(parts_name, config, {"--stop-at", stop});
            ASSERT_TRUE(part.status.ok()) << part.log;
            EXPECT_EQ(part.summary.at("steps"), std::stoi(stop)) << part.log;
        }
        const auto last = runs_.run(parts_name, config);
        ASSERT_TRUE(last.status.ok()) << last.log;
        EXPECT_EQ(last.hash(), whole.hash()) << codec;
        runs_.expect_same_losses(whole_name, parts_name, "east");
        runs_.expect_same_losses(whole_name, parts_name, "west");
    }
}

TEST_F(TrainingRun, a_finished_run_started_again_says_once_more_what_it_came_to) {
    const auto config = runs_.write_config({"east", "west"}, {});
    const auto first = runs_.run("run", config);
    const auto again = runs_.run("run", config);
    ASSERT_TRUE(again.status.ok()) << again.log;
    for (const char* key : {"parameters_blake2b", "steps", "rounds", "tokens", "train_loss", "val_loss"})
        EXPECT_EQ(again.summary.at(key), first.summary.at(key)) << key;
}

TEST_F(TrainingRun, stops_inside_a_logging_interval_change_neither_its_mean_loss_nor_the_count_of_tokens) {
    const auto config = runs_.write_config({"east", "west"}, {{"monitor.log_interval", "4"}});
    const auto whole = runs_.run("whole", config);
    for (const char* stop : {"5", "6"}) runs_.run("parts", config, {"--stop-at", stop});
    const auto last = runs_.run("parts", config);
    ASSERT_TRUE(last.status.ok()) << last.log;
    runs_.expect_same_losses("whole", "parts", "east");
    EXPECT_EQ(last.summary.at("tokens"), whole.summary.at("tokens"));
}

TEST_F(TrainingRun, a_checkpoint_of_another_directory_is_gone_on_from) {
    const auto config = runs_.write_config({"east", "west"}, {{"checkpoint.interval", "6"}});
    const auto whole = runs_.run("whole", config);
    const auto step = (runs_.directory("whole") / "checkpoints" / "step_6").string();
    const auto rest = runs_.run("rest", config, {"--resume", step});
    ASSERT_TRUE(rest.status.ok()) << rest.log;
    EXPECT_EQ(rest.hash(), whole.hash());
    const auto losses = runs_.losses("rest", "east");
    EXPECT_FALSE(losses.contains(6));
    EXPECT_EQ(losses.at(7), runs_.losses("whole", "east").at(7));
}

TEST_F(TrainingRun, a_stopped_run_refuses_another_model_at_once_and_takes_other_rates_and_layouts) {
    const auto config = runs_.write_config({"solo"}, {});
    ASSERT_TRUE(runs_.run("run", config, {"--stop-at", "6"}).status.ok());
    const auto files = make_system_file_system();
    const std::string before = files->read_text(runs_.directory("run") / "config.toml");
    // Of a model with as many elements in every tensor, too.
    const auto refused = runs_.run("run", config, {"--set", "model.heads=4", "--set", "run.seed=7"});
    EXPECT_EQ(refused.status.code, 2) << refused.log;
    for (const char* part : {"model.heads = 4: the run has 2", "run.seed = 7: the run has 1", "step_6", "--run-dir"})
        EXPECT_NE(refused.log.find(part), std::string::npos) << part << "\n" << refused.log;
    EXPECT_EQ(refused.log.find("[run] site solo"), refused.log.rfind("[run] site solo")) << "started:\n" << refused.log;
    EXPECT_EQ(files->read_text(runs_.directory("run") / "config.toml"), before);
    // Other tokens in files of the same size.
    const auto shard = runs_.directory("data") / "train_000000.bin";
    const std::string tokens = files->read_text(shard);
    std::string others = tokens;
    std::reverse(others.begin() + 2048, others.end());
    files->write_text_atomically(shard, others);
    const auto mixed = runs_.run("run", config);
    EXPECT_EQ(mixed.status.code, 2) << mixed.log;
    EXPECT_NE(mixed.log.find("data.train (contents) = 1 files"), std::string::npos) << mixed.log;
    files->write_text_atomically(shard, tokens);
    const auto step = (runs_.directory("run") / "checkpoints" / "step_6").string();
    const auto elsewhere = runs_.run("other", config, {"--set", "model.tied=true", "--resume", step});
    EXPECT_EQ(elsewhere.status.code, 2) << elsewhere.log;
    EXPECT_FALSE(std::filesystem::exists(runs_.directory("other")));

    const auto changed =
        runs_.run("run", config, {"--set", "optim.lr=0.001", "--set", "train.steps=10", "--set", "train.micro_batch=4"});
    EXPECT_TRUE(changed.status.ok()) << changed.log;
    EXPECT_EQ(changed.summary.at("steps"), 10);
}

TEST_F(TrainingRun, a_checkpoint_with_a_flipped_bit_is_named_and_the_one_before_is_used) {
    const auto config = runs_.write_config({"east", "west"}, {{"checkpoint.interval", "4"}});
    const auto whole = runs_.run("run", config);
    const auto part = runs_.directory("run") / "checkpoints" / "step_12" / "site_east" / "rank_0";
    for (const auto& entry : std::filesystem::directory_iterator(part)) {
        if (entry.path().extension() != ".bin") continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(64);
        const char byte = static_cast<char>(file.get() ^ 4);
        file.seekp(64);
        file.put(byte);
    }
    const auto again = runs_.run("run", config);
    ASSERT_TRUE(again.status.ok()) << again.log;
    EXPECT_NE(again.log.find("the checkpoint of step 12 is not used"), std::string::npos) << again.log;
    EXPECT_EQ(again.hash(), whole.hash());
}

TEST_F(TrainingRun, a_checkpoint_with_a_broken_manifest_is_named_and_the_one_before_is_used) {
    const auto config = runs_.write_config({"solo"}, {{"checkpoint.interval", "4"}});
    const auto whole = runs_.run("run", config);
    const auto manifest = runs_.directory("run") / "checkpoints" / "step_12" / "site_solo" / "rank_0" / "manifest.json";
    std::ofstream(manifest) << "{";
    const auto again = runs_.run("run", config);
    ASSERT_TRUE(again.status.ok()) << again.log;
    EXPECT_NE(again.log.find(manifest.string()), std::string::npos) << again.log;
    EXPECT_NE(again.log.find("the checkpoint of step 12 is not used"), std::string::npos) << again.log;
    EXPECT_NE(again.log.find("going on from the checkpoint of step 8"), std::string::npos) << again.log;
    EXPECT_EQ(again.hash(), whole.hash());
}

TEST_F(TrainingRun, single_steps_with_plain_descent_are_synchronous_data_parallelism) {
    const std::map<std::string, std::string> plain{
        {"optim.kind", "\"sgd\""},  {"optim.lr", "0.1"},           {"optim.schedule", "\"constant\""},
        {"optim.grad_clip", "0.0"}, {"optim.weight_decay", "0.0"}, {"outer.inner_steps", "1"},
        {"outer.lr", "1.0"},        {"outer.momentum", "0.0"},     {"exchange.codec", "\"identity\""}};
    auto together = plain;
    together["train.sequences_per_step"] = "8";
    const auto sites = runs_.run("sites", runs_.write_config({"east", "west"}, plain));
    const auto one = runs_.run("one", runs_.write_config({"solo"}, together));
    ASSERT_TRUE(sites.status.ok()) << sites.log;
    ASSERT_TRUE(one.status.ok()) << one.log;
    const auto east = runs_.losses("sites", "east");
    const auto west = runs_.losses("sites", "west");
    for (const auto& [step, loss] : runs_.losses("one", "solo"))
        EXPECT_NEAR((east.at(step) + west.at(step)) / 2, loss, 1e-6 * loss) << "step " << step;
    // The sites share the held-out windows; their sum is what one site finds by itself.
    const double alone = one.summary.at("val_loss");
    EXPECT_NEAR(sites.summary.at("val_loss").get<double>(), alone, 1e-6 * alone);
}

// What is left between the two is the rounding of θ − (θ − θ′) at the ends of rounds.
TEST_F(TrainingRun, one_site_with_outer_rate_one_and_no_momentum_is_plain_training) {
    std::map<std::string, std::string> changes{
        {"outer.lr", "1.0"}, {"outer.momentum", "0.0"}, {"exchange.codec", "\"identity\""}};
    const auto rounds = runs_.run("rounds", runs_.write_config({"solo"}, changes));
    changes["outer.inner_steps"] = "12";
    const auto plain = runs_.run("plain", runs_.write_config({"solo"}, changes));
    ASSERT_TRUE(rounds.status.ok()) << rounds.log;
    ASSERT_TRUE(plain.status.ok()) << plain.log;
    EXPECT_EQ(rounds.summary.at("rounds"), 3);
    EXPECT_EQ(plain.summary.at("rounds"), 1);
    const auto losses = runs_.losses("rounds", "solo");
    for (const auto& [step, loss] : runs_.losses("plain", "solo")) {
        if (step <= 4)
            EXPECT_EQ(losses.at(step), loss) << "step " << step;
        else
            EXPECT_NEAR(losses.at(step), loss, 1e-5 * loss) << "step " << step;
    }
}

TEST_F(TrainingRun, a_batch_dump_holds_every_step_of_a_site_once_as_the_reader_gives_it) {
    const auto config = runs_.write_config({"east", "west"}, {{"island.ranks", "2"}, {"island.dp", "2"}});
    const auto dumps = runs_.directory("dumps");
    const auto outcome = runs_.run("dumped", config, {"--dump-batches", dumps.string()});
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;

    const auto files = make_system_file_system();
    const Corpus corpus(*files, {runs_.directory("data").string() + "/train_*.bin"},
                        {.vocab = 257, .end_of_text = 256});
    BatchReader reader(corpus, {.context = 32, .sequences_per_step = 4, .micro_batch = 2}, 1);
    std::set<std::int64_t> blocks;
    for (const char* site : {"east.bin", "west.bin"}) {
        const auto batches = read_dump(dumps / site, 2);
        ASSERT_EQ(batches.size(), 12u * 2) << site;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            EXPECT_EQ(batches[i].step, static_cast<std::int64_t>(i / 2));
            EXPECT_EQ(batches[i].micro_batch, static_cast<std::int64_t>(i % 2));
            MicroBatch expected(64);
            reader.read(batches[i].block, batches[i].micro_batch, expected.view());
            EXPECT_EQ(batches[i].batch, expected) << site << " step " << batches[i].step;
            blocks.insert(batches[i].block);
        }
    }
    EXPECT_EQ(blocks.size(), 2u * 12) << "no block is trained on twice";
}

TEST_F(TrainingRun, an_island_of_two_ranks_trains_as_one_rank_does) {
    const auto one = runs_.run("one", runs_.write_config({"solo"}, {}));
    const auto two =
        runs_.run("two", runs_.write_config({"solo"}, {{"island.ranks", "2"}, {"island.dp", "2"}}));
    ASSERT_TRUE(one.status.ok()) << one.log;
    ASSERT_TRUE(two.status.ok()) << two.log;
    const auto expected = runs_.losses("one", "solo");
    const auto got = runs_.losses("two", "solo");
    ASSERT_EQ(got.size(), expected.size());
    for (const auto& [step, loss] : expected) EXPECT_NEAR(got.at(step), loss, 1e-4 * loss) << "step " << step;
}

// The plan in the file is for a link on which a step takes seconds, so that any real step drifts from it.
TEST_F(TrainingRun, strands_are_planned_again_when_steps_drift_from_the_plan_and_train_with_the_same_bits) {
    std::map<std::string, std::string> changes{
        {"train.steps", "56"}, {"outer.inner_steps", "14"}, {"train.micro_batch", "1"}, {"island.tp", "2"}};
    const auto serial = runs_.run("serial", runs_.write_config({"solo"}, changes));
    changes["island.schedule"] = "\"strands\"";
    const auto config = runs_.write_config({"solo"}, changes);
    const std::string plan = runs_.directory("plan.json");
    ASSERT_TRUE(runs_.call({"plan", config, "--link", "1M", "--out", plan}, "plan").ok()) << runs_.output("plan");
    const auto strands = runs_.run("strands", config, {"--set", "island.plan=\"" + plan + "\""});
    ASSERT_TRUE(serial.status.ok()) << serial.log;
    ASSERT_TRUE(strands.status.ok()) << strands.log;
    EXPECT_NE(strands.log.find("[plan] planning strands again: 50 steps took"), std::string::npos) << strands.log;
    EXPECT_NE(strands.log.find("[plan] measuring how long ops take"), std::string::npos) << strands.log;
    EXPECT_TRUE(std::filesystem::exists(runs_.directory("strands") / "strand_profile_solo.json"));
    EXPECT_EQ(strands.hash(), serial.hash());
}

TEST_F(TrainingRun, islands_that_cut_the_model_differently_agree_and_go_on_in_other_layouts) {
    const auto config = runs_.write_config({"east", "west"}, {{"train.steps", "8"}});
    const auto cut = [](const std::string& site, const std::string& degree) {
        return std::vector<std::string>{"--set", "site." + site + "." + degree};
    };
    const auto join = [](std::vector<std::string> first, const std::vector<std::string>& second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    };
    const auto plain = runs_.run("plain", config);
    const auto first =
        runs_.run("cut", config, join(join(cut("east", "tp=2"), cut("west", "pp=2")), {"--stop-at", "6"}));
    const auto second = runs_.run("cut", config,
                                  join(join(cut("east", "pp=2"), cut("east", "schedule=strands")),
                                       cut("east", "stage_layers=\"0,1,1,0\"")));
    for (const auto* outcome : {&plain, &first, &second}) {
        ASSERT_TRUE(outcome->status.ok()) << outcome->log;
        const auto& sites = outcome->summary.at("sites");
        EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"));
    }
    EXPECT_EQ(second.summary.at("steps"), 8);
    for (const char* site : {"east", "west"})
        for (const auto& [step, loss] : runs_.losses("plain", site))
            EXPECT_NEAR(runs_.losses("cut", site).at(step), loss, 2e-4 * loss) << site << " step " << step;
}

}  // namespace
}  // namespace atl::test
