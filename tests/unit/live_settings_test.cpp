// Which settings of a run may change while it goes on, and what is said about the others.
#include <gtest/gtest.h>

#include "coordinator/live_settings.h"
#include "coordinator/run_options.h"
#include "core/error.h"

namespace atl {
namespace {

RunConfig resolved() {
    RunConfig config;
    config.run.directory = "runs/run";
    config.model.kv_heads = 4;
    config.model.ffn = 704;
    config.island.ranks = config.island.dp = config.island.chunks = 1;
    config.island.schedule = "serial";
    config.outer.lr = 0.6;
    for (const char* name : {"east", "west"}) {
        SiteConfig& site = config.sites.emplace_back();
        site.name = name;
        site.island = config.island;
    }
    return config;
}

std::vector<std::string> problems(const std::vector<std::string>& assignments,
                                  const RunConfig& config = resolved()) {
    try {
        (void)change_settings(config, assignments);
        return {};
    } catch (const UserError& error) {
        return error.problems();
    }
}

TEST(LiveSettings, several_change_together_and_say_what_they_were) {
    const ChangedRun changed =
        change_settings(resolved(), {"outer.inner_steps=64", "outer.lr=0.8", "exchange.codec=int4"});
    EXPECT_EQ(changed.describe(),
              "exchange.codec \"int8\" → \"int4\", outer.inner_steps 50 → 64, outer.lr 0.6 → 0.8");
    const RunNumbers numbers = run_numbers(changed.config);
    EXPECT_EQ(numbers.inner_steps, 64);
    EXPECT_EQ(numbers.method.outer_lr, 0.8);
    EXPECT_EQ(numbers.method.codec, "int4");
}

TEST(LiveSettings, every_live_setting_is_a_key_that_takes_its_own_value) {
    RunConfig config = resolved();
    for (const std::string& name : live_settings()) {
        const auto setting = shared_settings(config);
        const auto found = setting.find(name);
        const std::string value = found == setting.end() ? "3" : found->second;
        EXPECT_TRUE(problems({name + "=" + value}).empty()) << name << " = " << value;
    }
}

TEST(LiveSettings, an_old_spelling_is_understood) {
    EXPECT_EQ(change_settings(resolved(), {"outer.sync_every=10"}).config.outer.inner_steps, 10);
}

TEST(LiveSettings, auto_stands_for_the_outer_rate_of_so_many_sites) {
    RunConfig config = resolved();
    config.outer.lr = 0.9;
    EXPECT_EQ(change_settings(config, {"outer.lr=auto"}).config.outer.lr, 0.6);
}

TEST(LiveSettings, all_that_is_wrong_is_in_one_report) {
    const auto all = problems(
        {"model.layers=3", "outer.iner_steps=64", "outer.momentum=7", "site.east.threads=2", "outer.lr"});
    ASSERT_EQ(all.size(), 5U);
    EXPECT_NE(all[0].find("model.layers=3: can't be changed while the run goes on; these can: outer.inner"),
              std::string::npos)
        << all[0];
    EXPECT_NE(all[1].find("site.east.threads=2: can't be changed"), std::string::npos) << all[1];
    EXPECT_EQ(all[2], "set: outer.lr: must be table.key=value");
    EXPECT_EQ(all[3], "set: outer.iner_steps = 64: unknown key; nearest known key: outer.inner_steps");
    EXPECT_EQ(all[4], "set: outer.momentum = 7: outside its range: number 0 … 0.999999");
}

TEST(LiveSettings, what_sites_keep_buffers_for_neither_begins_nor_ends) {
    EXPECT_EQ(problems({"outer.momentum=0"}).size(), 1U);
    EXPECT_EQ(problems({"exchange.codec=top_k"}).size(), 1U);
    EXPECT_EQ(problems({"exchange.codec=sign"}).size(), 1U);
    EXPECT_TRUE(problems({"outer.momentum=0.5"}).empty());
}

TEST(LiveSettings, rules_between_keys_hold_for_changes_too) {
    RunConfig config = resolved();
    config.outer.overlap_steps = 3;
    const auto all = problems({"outer.inner_steps=2"}, config);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_NE(all[0].find("must be below outer.inner_steps / outer.fragments = 2"), std::string::npos) << all[0];
}

}  // namespace
}  // namespace atl
