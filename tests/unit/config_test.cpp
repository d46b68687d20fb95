// Config: defaults, derived values, includes, overrides, old spellings, and that what is printed reads back.
// Reports about wrong configs are pinned in tests/golden/wrong_config_test.cpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "config/kept_settings.h"
#include "config/key_table.h"
#include "config/load_config.h"
#include "config/model_preset.h"
#include "config/nearest_name.h"
#include "config/rules.h"
#include "core/error.h"
#include "core/glob.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

class ConfigTest : public testing::Test {
  protected:
    std::filesystem::path write(const std::string& name, const std::string& text) {
        const std::filesystem::path path = directory_.path() / name;
        files_->write_text_atomically(path, text);
        return path;
    }
    LoadedConfig load(const std::string& text, std::vector<std::string> overrides = {}) {
        return load_config(*files_, {.file = write("run.toml", text), .overrides = std::move(overrides)});
    }
    std::string report(const std::string& text, std::vector<std::string> overrides = {}) {
        try {
            load(text, std::move(overrides));
        } catch (const UserError& error) {
            return error.what();
        }
        return "accepted";
    }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

TEST_F(ConfigTest, an_empty_file_gives_the_documented_defaults) {
    const RunConfig config = load("").config;
    EXPECT_EQ(config.outer.inner_steps, 50);
    EXPECT_EQ(config.outer.lr, 1);
    EXPECT_EQ(config.outer.momentum, 0);
    EXPECT_EQ(config.outer.alpha, 0);
    EXPECT_EQ(config.exchange.codec, "int8");
    EXPECT_EQ(config.run.directory, "runs/run");
    EXPECT_EQ(config.model.kv_heads, 4);
    EXPECT_EQ(config.model.ffn, 704);  // 8/3 · 256 = 682.7, rounded up to 32
    ASSERT_EQ(config.sites.size(), 1U);
    EXPECT_EQ(config.sites[0].name, "local");
    EXPECT_EQ(config.sites[0].island.ranks, 1);
}

TEST_F(ConfigTest, every_value_of_the_printed_config_reads_back_equal) {
    const RunConfig config = load(R"(
        [run]
        name = "round-trip"
        directory = "a \"quoted\" \\ path"
        [model]
        preset = "gpt2-124m"
        context = 512
        [optim]
        kind = "sgd"
        schedule = "wsd"
        lr = 3.0000000000000004e-4
        epsilon = 1e-12
        [outer]
        method = "average"
        inner_steps = 7
        [island]
        ranks = 2
        [train]
        sequences_per_step = 12
        [[site]]
        name = "oslo"
        threads = 3
        [[site]]
        name = "bern"
        dp = 1
        ranks = 1
        address = "127.0.0.1:7401")")
                                 .config;
    const RunConfig again = load(to_toml(config)).config;
    EXPECT_EQ(again, config) << to_toml(config);
    EXPECT_EQ(to_toml(again), to_toml(config));
}

TEST_F(ConfigTest, the_printed_config_names_every_key) {
    const std::string text = to_toml(load("").config);
    for (const auto& key : run_keys())
        EXPECT_NE(text.find("\n" + std::string(key.name) + " = "), std::string::npos);
    for (const auto& key : island_keys())
        EXPECT_NE(text.find("\n" + std::string(key.name) + " = "), std::string::npos);
}

TEST_F(ConfigTest, sites_inherit_the_island_override_it_and_stand_in_the_order_of_their_names) {
    const RunConfig config = load(R"(
        [island]
        threads = 2
        [[site]]
        name = "oslo"
        [[site]]
        name = "bern"
        threads = 5
        dp = 4)")
                                 .config;
    ASSERT_EQ(config.sites.size(), 2U);
    EXPECT_EQ(config.sites[0].name, "bern");
    EXPECT_EQ(config.sites[0].island.threads, 5);
    EXPECT_EQ(config.sites[0].island.ranks, 4);
    EXPECT_EQ(config.sites[1].island.threads, 2);
    EXPECT_EQ(config.sites[1].island.dp, 1);
    EXPECT_EQ(config.train.micro_batch, 2);  // 8 sequences, 4 ranks at one site
}

TEST_F(ConfigTest, the_automatic_outer_learning_rate_grows_from_4_to_8_sites) {
    EXPECT_EQ(automatic_outer_lr(1), 0.6);
    EXPECT_EQ(automatic_outer_lr(4), 0.6);
    EXPECT_DOUBLE_EQ(automatic_outer_lr(6), 0.7);
    EXPECT_DOUBLE_EQ(automatic_outer_lr(8), 0.8);
    EXPECT_DOUBLE_EQ(automatic_outer_lr(100), 0.8);
    EXPECT_EQ(load("[outer]\nlr = \"auto\"\nmomentum = 0.9").config.outer.lr, 0.6);
    EXPECT_EQ(load("[outer]\nlr = 0.5\nmomentum = 0.9").config.outer.lr, 0.5);
}

TEST_F(ConfigTest, fewer_than_eight_sites_are_averaged_unless_a_momentum_is_given) {
    std::string sites;
    for (int site = 1; site <= 8; ++site) {
        sites += "[[site]]\nname = \"site" + std::to_string(site) + "\"\n";
        const OuterConfig outer = load(sites).config.outer;
        EXPECT_EQ(outer.momentum, site < 8 ? 0 : 0.9) << site;
        EXPECT_DOUBLE_EQ(outer.lr, site < 8 ? 1 : 0.8) << site;
    }
    const OuterConfig told = load("[outer]\nmomentum = 0.5").config.outer;
    EXPECT_EQ(told.momentum, 0.5);
    EXPECT_EQ(told.lr, 0.6);
    EXPECT_EQ(load("[outer]\nmethod = \"eager\"").config.outer.momentum, 0.9);
}

TEST_F(ConfigTest, a_short_run_gets_a_short_round_unless_one_is_asked_for) {
    EXPECT_EQ(load("[train]\nsteps = 20").config.outer.inner_steps, 20);
}

TEST_F(ConfigTest, the_length_of_rounds_may_be_left_to_the_tuner) {
    const RunConfig config = load("outer.inner_steps = \"auto\"").config;
    EXPECT_EQ(config.outer.inner_steps, 0);
    EXPECT_NE(to_toml(config).find("inner_steps = \"auto\""), std::string::npos);
    EXPECT_EQ(load(to_toml(config)).config, config);
    EXPECT_NE(report("outer.inner_steps = \"often\"").find("must be an integer or \"auto\""),
              std::string::npos);
    EXPECT_NE(report("outer.inner_steps = 0").find("outside its range: \"auto\" or integer ≥ 1"),
              std::string::npos);
}

TEST_F(ConfigTest, plain_averaging_has_no_momentum) {
    const OuterConfig outer = load("[outer]\nmethod = \"average\"").config.outer;
    EXPECT_EQ(outer.lr, 1);
    EXPECT_EQ(outer.momentum, 0);
    EXPECT_FALSE(outer.nesterov);
}

TEST_F(ConfigTest, old_names_of_inner_steps_are_understood_with_a_notice) {
    for (const std::string name : {"local_steps", "sync_every"}) {
        const LoadedConfig loaded = load("[outer]\n" + name + " = 30");
        EXPECT_EQ(loaded.config.outer.inner_steps, 30);
        ASSERT_EQ(loaded.notices.size(), 1U);
        EXPECT_NE(loaded.notices[0].find("run.toml:2: outer." + name + " is read as outer.inner_steps"),
                  std::string::npos)
            << loaded.notices[0];
    }
}

TEST_F(ConfigTest, an_included_file_gives_way_to_the_file_that_includes_it) {
    write("base.toml", "[train]\nsteps = 10\nsequences_per_step = 4\n[[site]]\nname = \"a\"\n");
    const RunConfig config = load("include = \"@base.toml\"\n[train]\nsteps = 20\n").config;
    EXPECT_EQ(config.train.steps, 20);
    EXPECT_EQ(config.train.sequences_per_step, 4);
    EXPECT_EQ(config.sites[0].name, "a");
    EXPECT_EQ(load("include = [\"base.toml\"]\n[[site]]\nname = \"b\"").config.sites.size(), 1U);
}

TEST_F(ConfigTest, a_problem_in_an_included_file_is_placed_there) {
    write("base.toml", "[train]\n\nsteps = -1\n");
    EXPECT_NE(report("include = \"base.toml\"")
                  .find("base.toml:3: train.steps = -1: outside its range: integer ≥ 1"),
              std::string::npos);
}

TEST_F(ConfigTest, problems_stand_in_the_order_of_the_files_lines_whatever_kind_they_are) {
    const std::string text =
        report("[outer]\nfragments = 0\n[model]\nheads = 5\nhidden = 64\n[train]\nstep = 3\n");
    std::vector<std::int64_t> lines;
    std::istringstream problems(text);
    for (std::string problem; std::getline(problems, problem);)
        lines.push_back(std::stoll(problem.substr(problem.find(".toml:") + 6)));
    EXPECT_GE(lines.size(), 3u) << text;
    EXPECT_TRUE(std::ranges::is_sorted(lines)) << text;
}

TEST_F(ConfigTest, overrides_win_and_need_no_quotes) {
    const RunConfig config =
        load("[train]\nsteps = 10\n[[site]]\nname = \"a\"\n[[site]]\nname = \"b\"",
             {"train.steps=20", "run.name=mine", "outer.lr=auto", "data.train=[]", "site.b.threads=7"})
            .config;
    EXPECT_EQ(config.train.steps, 20);
    EXPECT_EQ(config.run.name, "mine");
    EXPECT_EQ(config.sites[0].island.threads, 0);
    EXPECT_EQ(config.sites[1].island.threads, 7);
}

TEST_F(ConfigTest, wrong_overrides_are_named_as_such_all_at_once) {
    EXPECT_EQ(
        report("", {"train.step=20", "train.steps=many", "steps=3", "site.oslo.threads=1", "trian.steps=1"}),
        "--set: steps=3: must be table.key=value\n"
        "--set: site.oslo.threads = 1: unknown site; nearest known site: local\n"
        "--set: train.step = 20: unknown key; nearest known key: train.steps\n"
        "--set: train.steps = many: must be an integer\n"
        "--set: trian.steps = 1: unknown key; nearest known key: train.steps");
    EXPECT_EQ(report("[[site]]\nname = \"oslo\"", {"site.olso.threads=1"}),
              "--set: site.olso.threads = 1: unknown site; nearest known site: oslo");
}

TEST_F(ConfigTest, the_site_that_is_there_without_being_written_takes_overrides) {
    EXPECT_EQ(load("", {"site.local.threads=3"}).config.sites.at(0).island.threads, 3);
}

TEST_F(ConfigTest, a_path_that_exists_is_no_pattern) {
    const auto shard = write("shard[1].bin", "");
    const auto other = write("shard1.bin", "");
    EXPECT_EQ(glob(shard.string()), std::vector<std::filesystem::path>{shard});
    EXPECT_EQ(glob((shard.parent_path() / "shard[12].bin").string()),
              std::vector<std::filesystem::path>{other});
    EXPECT_EQ(report("[data]\ntrain = \"" + shard.string() + "\"\n"), "accepted");
}

TEST_F(ConfigTest, files_are_looked_for_only_when_asked) {
    const auto path = write("run.toml", "[data]\ntrain = \"/nowhere/*.bin\"");
    EXPECT_NO_THROW(load_config(*files_, {.file = path, .overrides = {}, .check_files = false}));
    EXPECT_THROW(load_config(*files_, {.file = path, .overrides = {}}), UserError);
    write("train_0.bin", "");
    EXPECT_NO_THROW(load("[data]\ntrain = \"" + (directory_.path() / "train_*.bin").string() + "\""));
}

TEST_F(ConfigTest, a_missing_config_is_the_users_mistake) {
    EXPECT_THROW(load_config(*files_, {.file = directory_.path() / "absent.toml", .overrides = {}}),
                 UserError);
}

TEST_F(ConfigTest, insecure_mode_allows_addresses_beyond_this_machine) {
    EXPECT_NO_THROW(load("[coordinator]\naddress = \"0.0.0.0:7400\"\n[security]\nmode = \"insecure\""));
}

TEST(Config, presets_are_shapes_that_pass_their_own_rules) {
    for (const std::string& name : model_preset_names()) {
        const ModelConfig model = *model_preset(name);
        EXPECT_EQ(model.hidden % model.heads, 0) << name;
        EXPECT_EQ(model.heads % model.kv_heads, 0) << name;
    }
}

TEST(Config, nearest_names_forgive_swaps_and_wrong_tables) {
    EXPECT_EQ(edit_distance("steps", "stesp"), 1);
    EXPECT_EQ(edit_distance("", "abc"), 3);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
    EXPECT_EQ(nearest_name("train.lr", {"train.steps", "optim.lr"}), "optim.lr");
    EXPECT_EQ(nearest_name("x", {}), "");
}

TEST_F(ConfigTest, a_run_keeps_its_model_data_order_and_buffers_and_nothing_else) {
    const std::string text = "[outer]\nmomentum = 0.9";
    const KeptSettings run = kept_settings(load(text).config);
    const auto unkept = [&](std::vector<std::string> overrides) {
        return unkept_settings(run, kept_settings(load(text, std::move(overrides)).config));
    };
    for (const char* key :
         {"run.seed=2", "model.layers=3", "model.kv_heads=2", "model.context=128", "model.tied=true",
          "data.end_of_text=0", "train.sequences_per_step=4", "optim.kind=sgd", "outer.method=adam",
          "outer.fragments=2", "outer.momentum=0", "exchange.codec=top_k"})
        EXPECT_EQ(unkept({key}).size(), 1U) << key;
    for (const char* key :
         {"optim.lr=0.5", "train.steps=2000", "train.micro_batch=4", "outer.momentum=0.5",
          "exchange.codec=int4", "exchange.error_feedback=0", "island.tp=2", "model.init=."})
        EXPECT_EQ(unkept({key}), std::vector<std::string>()) << key;
    EXPECT_EQ(
        unkept({"model.heads=2", "model.hidden=64", "model.ffn=704"}),
        (std::vector<std::string>{"model.heads = 2: the run has 4", "model.hidden = 64: the run has 256",
                                  "model.kv_heads = 2: the run has 4"}));
    EXPECT_EQ(unkept_settings({}, run), std::vector<std::string>());
}

TEST_F(ConfigTest, a_run_keeps_the_numbers_of_its_sites) {
    const auto with_sites = [&](const std::vector<std::string>& names) {
        std::string text;
        for (const auto& name : names) text += "[[site]]\nname = \"" + name + "\"\n";
        return kept_settings(load(text).config);
    };
    const KeptSettings run = with_sites({"east", "west"});
    for (const auto& names : std::vector<std::vector<std::string>>{{"west", "east"}, {"east"}, {"east", "west", "x"}})
        EXPECT_EQ(unkept_settings(run, with_sites(names)), std::vector<std::string>());
    for (const auto& names : std::vector<std::vector<std::string>>{{"west"}, {"ada", "east", "west"}, {"easter"}}) {
        const auto problems = unkept_settings(run, with_sites(names));
        ASSERT_EQ(problems.size(), 1U);
        EXPECT_NE(problems.front().find("the run has east;west;"), std::string::npos) << problems.front();
    }
}

TEST(Config, the_readme_of_configs_names_every_key_as_the_code_has_it) {
    const char* source = std::getenv("ATOLL_SOURCE_DIR");
    ASSERT_NE(source, nullptr);
    const auto readme = std::filesystem::path(source) / "configs" / "README.md";
    const std::string text = make_system_file_system()->read_text(readme);
    EXPECT_NE(text.find(key_table_markdown()), std::string::npos)
        << "bring " << readme << " up to date; `atoll validate --keys` prints the table:\n"
        << key_table_markdown();
}

}  // namespace
}  // namespace atl
