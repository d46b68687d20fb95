// `atoll` as people and scripts meet it: exit codes, what stands on which stream, --json alone on its stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "config/load_config.h"
#include "core/child_process.h"
#include "core/file_system.h"
#include "support/atoll_commands.h"

namespace atl {
namespace {

using test::CommandOutcome;

class CliTest : public testing::Test {
  protected:
    CommandOutcome atoll(const std::string& arguments) { return atoll_.run(arguments); }

    test::AtollCommands atoll_;
};

TEST_F(CliTest, help_names_the_verbs_and_is_a_success) {
    const CommandOutcome outcome = atoll("--help");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.errors, "");
    for (const char* verb : {"prepare", "validate", "version"})
        EXPECT_NE(outcome.output.find(verb), std::string::npos) << outcome.output;
    EXPECT_EQ(atoll("validate --help").code, 0);
}

TEST_F(CliTest, a_wrong_command_line_is_told_on_standard_error_with_exit_code_2) {
    for (const char* arguments : {"",
                                  "valdate",
                                  "validate",
                                  "validate --colour",
                                  "prepare",
                                  "prepare x --held-out 2",
                                  "prepare x --held-out nan",
                                  "prepare x --out y --seed -1",
                                  "prepare . --out ''",
                                  "simulate",
                                  "simulate ge",
                                  "simulate geo",
                                  "simulate geo --model lama-1b",
                                  "simulate geo --model llama-1b --cluster a8000",
                                  "simulate geo --model llama-1b --link 3gbt",
                                  "simulate strands --cluster a4",
                                  "simulate strands --step --schedule strnds",
                                  "simulate strands --tp 4",
                                  "simulate strands --step --layers 99999999999999999999",
                                  "simulate strands --step --micro-batches 1000000",
                                  "simulate strands --step --layers 512 --micro-batches 4096",
                                  "simulate geo --published --sites 5",
                                  "simulate geo --model llama-1b --sites 1000000",
                                  "simulate geo --model llama-1b --tokens-per-step 1e300",
                                  "simulate strands --svg pictures",
                                  "simulate strands --step --schedule interleaved --pp 1",
                                  "simulate geo --model llama-1b --round-trip 1e308",
                                  "tune run.toml --step-seconds 1e300",
                                  "bench kernels --elements 9223372036854775807",
                                  "simulate strands --schedule strands",
                                  "simulate strands --step --sweep",
                                  "bench outer --elements 3 --fragments 5 --inner-steps 10",
                                  "bench exchange --sites 100000",
                                  "bench exchange --idle 1e300",
                                  "bench outer --later-rate-mbit 10",
                                  "bench outer --later-round 2"}) {
        const CommandOutcome outcome = atoll(arguments);
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.output, "") << arguments;
        EXPECT_NE(outcome.errors, "") << arguments;
    }
}

TEST_F(CliTest, a_wrong_command_line_is_reported_whole_with_the_nearest_names) {
    const std::map<std::string, std::string> told{
        {"valdate run.toml", "[atoll] valdate: unknown; nearest: validate (atoll --help lists them)\n"},
        {"--version", "[atoll] --version: unknown; nearest: version (atoll --help lists them)\n"},
        {"simulate ge", "[simulate] ge: unknown; nearest: geo (atoll simulate --help lists them)\n"},
        {"simulate geo --modle llama-1b",
         "[simulate geo] --modle: unknown; nearest: --model (atoll simulate geo --help lists them)\n"},
        {"plan a.toml b.toml",
         "[plan] b.toml: one word too many (atoll plan --help says what there is to say)\n"},
        {"tune a.toml --rate-mbit nan --rate-mbti 5 --step-seconds 0",
         "[tune] --rate-mbti: unknown; nearest: --rate-mbit (atoll tune --help lists them)\n"
         "[tune] --step-seconds: 0 is no number 1e-09 - 1000000000\n"
         "[tune] --rate-mbit: nan is no number 0.001 - 1000000000\n"},
        {"prepare", "[prepare] INPUT is required\n[prepare] --out is required\n"},
        {"simulate strands --step --sweep --svg pictures",
         "[simulate strands] --step and --sweep exclude each other\n"},
        {"plan a.toml --svg", "[plan] --svg: 1 required TEXT missing\n"},
        {"",
         "[atoll] one of bench, coordinator, eval, export, import, plan, prepare, run, set, simulate, "
         "status, tune, "
         "validate, version is required (atoll --help tells of them)\n"}};
    for (const auto& [arguments, errors] : told) {
        const CommandOutcome outcome = atoll(arguments);
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.errors, errors) << arguments;
    }
}

// Before the work whose result it was to hold: here there is nothing to work on.
TEST_F(CliTest, an_output_that_cannot_be_written_is_told_first_with_exit_code_2) {
    atoll_.write("file", "");
    for (const char* arguments :
         {"plan a.toml --svg ", "plan a.toml --out ", "bench a.toml --svg ", "bench a.toml --trace ",
          "bench a.toml --profile ", "simulate geo --model llama-1b --svg ", "tune a.toml --svg "})
        for (const char* file : {"none/x", "file/x", ".", "/proc/x", "/dev/null", "''"}) {
            const CommandOutcome outcome = atoll(std::string(arguments) + file);
            EXPECT_EQ(outcome.code, 2) << arguments << file;
            EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << arguments << file << "\n"
                                                                   << outcome.errors;
            EXPECT_NE(outcome.errors.find("] --"), std::string::npos) << outcome.errors;
        }
    for (const char* arguments :
         {"simulate strands --sweep --svg ", "run a.toml --dump-batches ", "run a.toml --run-dir ",
          "prepare file --out ", "import file --out ", "export file --out "})
        for (const char* folder : {"file", "file/x", "/proc/x"}) {
            const CommandOutcome outcome = atoll(std::string(arguments) + folder);
            EXPECT_EQ(outcome.code, 2) << arguments << folder << "\n" << outcome.errors;
        }
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(CliTest, a_file_of_strands_that_is_none_is_the_users_mistake) {
    atoll_.write("run.toml", "[island]\ntp = 2\nschedule = \"strands\"\n");
    atoll_.write("half.json", "{\"plan_format\": 1");
    for (const char* arguments :
         {"validate run.toml --set island.plan=half.json", "run run.toml --set island.plan=half.json",
          "validate run.toml --set island.profile=half.json", "plan run.toml --profile half.json",
          "bench run.toml --profile half.json"}) {
        const CommandOutcome outcome = atoll(arguments);
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_NE(outcome.errors.find("half.json: not a JSON object"), std::string::npos) << outcome.errors;
        EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    }
}

// As when the terminal is gone: nothing can be told, neither what was asked for nor why not.
TEST_F(CliTest, where_nobody_reads_a_command_ends_with_exit_code_1_and_by_no_signal) {
    ChildProcess process(
        {.command = {std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll", "validate", "--keys"},
         .output = "/dev/full"});
    const auto status = process.wait_for(Milliseconds(20'000));
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(to_string(*status), "exit code 1");
}

TEST_F(CliTest, simulate_names_the_nearest_and_says_that_it_simulates) {
    EXPECT_NE(atoll("simulate ge").errors.find("nearest: geo"), std::string::npos);
    EXPECT_NE(atoll("simulate strands --step --schedule strnds").errors.find("nearest: strands"),
              std::string::npos);
    const CommandOutcome step =
        atoll("simulate strands --step --tp 2 --pp 2 --layers 8 --micro-batches 4 --json");
    EXPECT_EQ(step.code, 0) << step.errors;
    EXPECT_EQ(nlohmann::json::parse(step.output)["simulated"], true);
    for (const auto& seconds :
         atoll_.json("simulate strands --step --layers 8 --micro-batches 4 --pp 1 --json")["step_seconds"])
        EXPECT_GT(seconds, 0) << "methods without a schedule are left out";
    EXPECT_NE(atoll("simulate geo --model lama-1b").errors.find("nearest: llama-1b"), std::string::npos);
    const CommandOutcome people = atoll("simulate geo --model llama-1b --sites 3 --svg sites.svg");
    EXPECT_EQ(people.code, 0) << people.errors;
    EXPECT_TRUE(people.output.starts_with("simulated: 3 sites")) << people.output;
    EXPECT_NE(atoll_.read("sites.svg").find("simulated"), std::string::npos);
    const CommandOutcome machines = atoll("simulate geo --model llama-1b --json");
    EXPECT_EQ(machines.code, 0) << machines.errors;
    const auto object = nlohmann::json::parse(machines.output);
    EXPECT_EQ(object["simulated"], true);
    EXPECT_GT(object["choices"].size(), 5u);
}

TEST_F(CliTest, validate_prints_a_config_that_reads_back_and_notices_on_standard_error) {
    atoll_.write("run.toml", "[outer]\nsync_every = 20\n");
    const CommandOutcome outcome = atoll("validate run.toml --set train.steps=40 --set run.name=mine");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_NE(outcome.errors.find("run.toml:2: outer.sync_every is read as outer.inner_steps"),
              std::string::npos);
    atoll_.write("resolved.toml", outcome.output);
    const RunConfig config =
        load_config(*make_system_file_system(), {.file = atoll_.path("resolved.toml"), .overrides = {}})
            .config;
    EXPECT_EQ(config.outer.inner_steps, 20);
    EXPECT_EQ(config.train.steps, 40);
    EXPECT_EQ(config.run.directory, "runs/mine");
}

TEST_F(CliTest, a_wrong_config_is_reported_whole_with_exit_code_2) {
    atoll_.write("run.toml", "[train]\nstep = 1\nsteps = 0\n");
    const CommandOutcome outcome = atoll("validate run.toml --set run.seed=x");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(outcome.errors,
              "run.toml:2: train.step = 1: unknown key; nearest known key: train.steps\n"
              "run.toml:3: train.steps = 0: outside its range: integer ≥ 1\n"
              "--set: run.seed = x: must be an integer\n");
    const auto json = nlohmann::json::parse(atoll("validate run.toml --json").output);
    EXPECT_EQ(json.at("valid"), false);
    EXPECT_EQ(json.at("problems").size(), 2U);
    atoll_.write("good.toml", "");
    EXPECT_EQ(nlohmann::json::parse(atoll("validate good.toml --json").output).at("valid"), true);
}

TEST_F(CliTest, plan_says_what_hides_behind_what_and_why_and_writes_what_runs_take) {
    const std::string config =
        std::string(std::getenv("ATOLL_SOURCE_DIR")) + "/configs/bench/strands_tp2.toml";
    const CommandOutcome text =
        atoll("plan " + config + " --link 1G --ingredients --out plan.json --svg step.svg");
    ASSERT_EQ(text.code, 0) << text.errors;
    for (const char* part :
         {"interleaved: interleaving is predicted to save", "times from: cost model, nothing was measured",
          "pair F0.0|B0.0", "beside linear", "bound by", "+ no barriers", "memory of the fullest rank"})
        EXPECT_NE(text.output.find(part), std::string::npos) << part << " in\n" << text.output;
    EXPECT_TRUE(std::filesystem::exists(atoll_.path("step.svg")));
    const CommandOutcome machine = atoll("plan " + config + " --link 1G --json");
    const auto json = nlohmann::json::parse(machine.output);
    EXPECT_EQ(json.at("hash"), nlohmann::json::parse(atoll_.read("plan.json")).at("hash"));
    EXPECT_GT(json.at("predicted_speedup"), 1.2);
    EXPECT_LE(json.at("predicted_speedup"), json.at("attainable"));
    EXPECT_GT(json.at("planning_seconds"), 0);
    EXPECT_FALSE(json.at("pairing").empty());
    EXPECT_NE(atoll("plan " + config + " --set island.schedule=serial")
                  .errors.find("only \"strands\" has something to plan"),
              std::string::npos);
    EXPECT_EQ(atoll("plan " + config + " --profile none.json").code, 2);
}

TEST_F(CliTest, plan_weighs_the_halves_of_a_lone_micro_batch_as_runs_do) {
    const std::string lone =
        "plan " + std::string(std::getenv("ATOLL_SOURCE_DIR")) +
        "/configs/bench/strands_tp2.toml --set train.sequences_per_step=2 --set train.micro_batch=2 "
        "--set model.layers=4 --json";
    const auto pays = atoll_.json(lone + " --link 300M --out plan.json --svg step.svg");
    EXPECT_EQ(pays.at("interleaves"), true);
    EXPECT_EQ(pays.at("halves_micro_batches"), true);
    EXPECT_NE(pays.at("reason").get<std::string>().find("two halves of the one micro-batch"),
              std::string::npos);
    EXPECT_LT(pays.at("event_seconds"), pays.at("serial_seconds"));
    EXPECT_EQ(nlohmann::json::parse(atoll_.read("plan.json")).at("hash"), pays.at("hash"));
    EXPECT_EQ(atoll_.json(lone + " --link 300M --set train.sequences_per_step=1 --set train.micro_batch=1")
                  .at("interleaves"),
              false)
        << "one sequence has no halves";
}

TEST_F(CliTest, bench_kernels_has_every_codec_beside_memcpy) {
    const CommandOutcome outcome = atoll("bench kernels --elements 70000 --repetitions 3 --json");
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    const auto json = nlohmann::json::parse(outcome.output);
    EXPECT_EQ(json.at("elements"), 70'000);
    std::map<std::string, std::set<std::string>> operations;
    for (const auto& row : json.at("speeds")) {
        EXPECT_GT(row.at("bytes_per_second"), 0.0);
        EXPECT_GE(row.at("bytes_per_second_best"), row.at("bytes_per_second"));
        EXPECT_GT(row.at("ratio_to_memcpy"), 0.0);
        if (row.at("instruction_set") != "avx2" && row.at("instruction_set") != "avx512")
            operations[row.at("codec")].insert(row.at("operation"));
    }
    EXPECT_EQ(operations.at("memcpy"), std::set<std::string>{"copy"});
    for (const char* codec : {"identity", "fp16", "bf16", "int8", "int4", "e3m0", "sign", "top_k_64"})
        EXPECT_EQ(operations.at(codec), (std::set<std::string>{"decode_add", "encode"})) << codec;
}

TEST_F(CliTest, prepare_writes_what_it_says_it_wrote) {
    atoll_.write("a.txt", "hello");
    atoll_.write("b.md", "world!");
    const CommandOutcome outcome = atoll("prepare a.txt b.md --out corpus --held-out 0 --json");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_NE(outcome.errors.find("no document was held out"), std::string::npos);
    const auto json = nlohmann::json::parse(outcome.output);
    EXPECT_EQ(json.at("train").at("documents"), 2);
    EXPECT_EQ(json.at("train").at("bytes"), 11);
    EXPECT_EQ(json.at("train").at("tokens"), 13);
    EXPECT_EQ(outcome.output, atoll_.read("corpus/corpus.json"));
    EXPECT_EQ(atoll("prepare a.txt b.md --out corpus").code, 2);  // there already
    atoll_.write("run.toml", "[data]\ntrain = \"corpus/train_*.bin\"\n");
    EXPECT_EQ(atoll("validate run.toml").code, 0);
    for (const char* arguments :
         {"prepare a.txt --out b.md", "prepare a.txt --out b.md/corpus", "run run.toml --run-dir b.md"}) {
        const CommandOutcome refused = atoll(arguments);
        EXPECT_EQ(refused.code, 2) << arguments;
        EXPECT_NE(refused.errors.find("b.md is no folder"), std::string::npos) << refused.errors;
    }
    EXPECT_EQ(atoll_.read("b.md"), "world!");
}

TEST_F(CliTest, prepare_tells_missing_inputs_from_corrupt_ones) {
    EXPECT_EQ(atoll("prepare absent.txt --out corpus").code, 2);
    atoll_.write("broken.txt.gz", "not gzip at all");
    const CommandOutcome outcome = atoll("prepare broken.txt.gz --out corpus");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.errors.find("broken.txt.gz, byte"), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(atoll_.path("corpus")));
    EXPECT_FALSE(std::filesystem::exists(atoll_.path("corpus.partial")));
}

}  // namespace
}  // namespace atl
