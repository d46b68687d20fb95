// Sites that are started each by itself, with files of their own, and what becomes of a run that loses one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <system_error>

#include "checkpoint/checkpoint.h"
#include "config/load_config.h"
#include "core/file_system.h"
#include "core/hash.h"
#include "model/tensors.h"
#include "support/training_run.h"

namespace atl::test {
namespace {

// A disk of its own, of so many bytes, until the end of the test.
class SmallDisk {
  public:
    SmallDisk(std::filesystem::path path, std::int64_t bytes) : path_(std::move(path)) {
        std::filesystem::create_directories(path_);
        const std::string size = "size=" + std::to_string(bytes);
        if (::mount("tmpfs", path_.c_str(), "tmpfs", 0, size.c_str()) != 0)
            throw std::system_error(errno, std::generic_category(), "mount " + path_.string());
    }
    ~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;

  private:
    std::filesystem::path path_;
};

class SeparateSites : public testing::Test {
  protected:
    std::map<std::string, std::string> settings(std::map<std::string, std::string> changes = {}) const {
        changes.insert({{"train.steps", "2000"},
                        {"outer.inner_steps", "50"},
                        {"monitor.log_interval", "50"},
                        {"timeouts.startup_ms", "10000"},  // so long a run waits for a site that is not there
                        {"coordinator.address", "\"127.0.0.1:" + std::to_string(free_port()) + "\""}});
        return changes;
    }
    ChildProcess start(const std::filesystem::path& config, const std::string& site) const {
        std::vector<std::string> arguments{"--site", site};
        if (site == "east") arguments.push_back("--with-coordinator");
        return runs_.start(site, config, arguments);
    }
    void kill_worker(const std::string& site) const {
        const auto processes = find_processes({"atoll-worker", runs_.directory(site).string()});
        ASSERT_EQ(processes.size(), 1u);
        ASSERT_EQ(::kill(processes.front(), SIGKILL), 0);
    }

    // XXH3-128 of a checkpoint's first and second moments, in the model's order.
    std::string moments_hash(const std::string& site, std::int64_t step) const {
        const auto files = make_system_file_system();
        const CheckpointReader reader(
            *files, checkpoint_directory(runs_.directory(site) / "checkpoints", Step(step)));
        const RunConfig config =
            load_config(*files, {.file = runs_.directory(site) / "config.toml", .overrides = {}}).config;
        std::vector<float> values;
        for (const std::string section : {"moment1", "moment2"})
            for (const TensorSpec& tensor : model_tensors(shape_of(config.model))) {
                const auto count = static_cast<std::size_t>(element_count(tensor.shape));
                values.resize(values.size() + count);
                reader.read(section + "/" + tensor.name, std::span(values).last(count));
            }
        return xxh3_128(std::as_bytes(std::span(values))).hex();
    }

    TrainingRuns runs_;
};

TEST_F(SeparateSites, a_site_whose_disk_is_full_leaves_and_the_others_go_on) {
    const auto config = runs_.write_config({"east", "west", "north"}, settings({{"checkpoint.interval", "200"}}));
    const SmallDisk disk(runs_.directory("west"), 256 * 1024);  // no room for a checkpoint
    ChildProcess east = start(config, "east"), west = start(config, "west"), north = start(config, "north");

    const auto full = runs_.finish("west", west);
    EXPECT_EQ(full.status.code, 1) << full.log;
    EXPECT_NE(full.log.find("No space left on device"), std::string::npos) << full.log;
    const auto first = runs_.finish("east", east), third = runs_.finish("north", north);
    EXPECT_TRUE(third.status.ok()) << third.log;
    EXPECT_EQ(first.summary.at("steps"), 2000) << first.log;
    EXPECT_EQ(third.summary.at("steps"), 2000);
    EXPECT_EQ(first.hash(), third.hash());
    EXPECT_FALSE(first.hash().empty());
}

TEST_F(SeparateSites, a_site_lost_for_good_leaves_the_rest_of_the_run_to_the_other) {
    const auto config = runs_.write_config({"east", "west"}, settings({{"island.restarts", "0"}}));
    ChildProcess east = start(config, "east"), west = start(config, "west");
    ASSERT_TRUE(runs_.wait_for_text("east", "round 1 committed")) << runs_.output("east");
    kill_worker("west");
    const auto lost = runs_.finish("west", west);
    EXPECT_EQ(lost.status.code, 1) << lost.log;
    EXPECT_NE(lost.log.find("signal 9"), std::string::npos) << lost.log;
    const auto left = runs_.finish("east", east);
    EXPECT_EQ(left.summary.at("steps"), 2000) << left.log;
    EXPECT_TRUE(left.status.ok()) << left.log;
    EXPECT_NE(left.log.find("site west is lost"), std::string::npos) << left.log;
}

TEST_F(SeparateSites, a_run_below_its_least_number_of_sites_waits_and_then_ends_with_a_checkpoint) {
    const auto config = runs_.write_config({"east", "west"}, settings({{"island.restarts", "0"},
                                                                       {"exchange.min_sites", "2"},
                                                                       {"timeouts.reconnect_ms", "2000"},
                                                                       {"timeouts.quorum_ms", "4000"}}));
    ChildProcess east = start(config, "east"), west = start(config, "west");
    ASSERT_TRUE(runs_.wait_for_text("east", "round 1 committed")) << runs_.output("east");
    kill_worker("west");
    runs_.finish("west", west);
    const auto waited = runs_.finish("east", east);
    EXPECT_EQ(waited.status.code, 1) << waited.log;
    EXPECT_NE(waited.log.find("waiting up to 4000 ms"), std::string::npos) << waited.log;
    EXPECT_NE(waited.log.find("4000 ms have passed"), std::string::npos) << waited.log;
    EXPECT_TRUE(std::filesystem::exists(runs_.directory("east") / "checkpoints")) << waited.log;

    // The site comes back: the run goes on from there.
    ChildProcess again = start(config, "east"), back = start(config, "west");
    const auto first = runs_.finish("east", again), second = runs_.finish("west", back);
    EXPECT_TRUE(first.status.ok()) << first.log;
    EXPECT_NE(first.log.find("going on from the checkpoint"), std::string::npos) << first.log;
    EXPECT_EQ(first.summary.at("steps"), 2000);
    EXPECT_EQ(first.hash(), second.hash());
    EXPECT_FALSE(first.hash().empty());
}

TEST_F(SeparateSites, a_second_process_under_one_name_waits_and_does_not_disturb_the_run) {
    const auto config = runs_.write_config({"east", "west"}, settings({{"train.steps", "4000"}}));
    ChildProcess east = start(config, "east"), west = start(config, "west");
    ASSERT_TRUE(runs_.wait_for_text("east", "round 1 committed")) << runs_.output("east");
    ChildProcess again = runs_.start("again", config, {"--site", "west"});
    ASSERT_TRUE(runs_.wait_for_text("again", "another process is in the run as site west")) << runs_.output("again");
    const auto first = runs_.finish("east", east), second = runs_.finish("west", west);
    const auto waited = runs_.finish("again", again);
    EXPECT_TRUE(waited.status.ok()) << "it is told that the run has ended\n" << waited.log;
    EXPECT_TRUE(first.status.ok()) << first.log;
    EXPECT_EQ(first.summary.at("steps"), 4000) << first.log;
    EXPECT_EQ(first.hash(), second.hash());
    EXPECT_EQ(first.log.find("another connection took its place"), std::string::npos) << first.log;
}

TEST_F(SeparateSites, a_site_that_comes_late_takes_part_from_the_next_round) {
    const auto config = runs_.write_config(
        {"east", "west", "north"}, settings({{"checkpoint.interval", "50"}, {"checkpoint.keep", "100"}}));
    ChildProcess east = start(config, "east"), west = start(config, "west");
    ASSERT_TRUE(runs_.wait_for_text("east", "round 2 committed")) << runs_.output("east");
    ChildProcess north = start(config, "north");
    const auto first = runs_.finish("east", east), second = runs_.finish("west", west);
    const auto late = runs_.finish("north", north);
    for (const auto* outcome : {&first, &second, &late}) EXPECT_TRUE(outcome->status.ok()) << outcome->log;
    EXPECT_EQ(late.hash(), first.hash());
    EXPECT_EQ(second.hash(), first.hash());
    EXPECT_FALSE(runs_.losses("north", "north").empty()) << late.log;

    // It began with the inner moments of the first site's checkpoint, and not with those of another.
    const std::string said = "took over the inner moments of site east after ";
    const auto at = late.log.find(said);
    ASSERT_NE(at, std::string::npos) << late.log;
    const std::int64_t steps = std::atoll(late.log.c_str() + at + said.size());
    EXPECT_GE(steps, 50);
    EXPECT_NE(late.log.find(moments_hash("east", steps), at), std::string::npos) << late.log;
    EXPECT_NE(moments_hash("east", steps), moments_hash("west", steps));
}

TEST_F(SeparateSites, a_site_that_comes_late_begins_without_moments_where_that_is_asked_for) {
    const auto config = runs_.write_config(
        {"east", "west"}, settings({{"checkpoint.interval", "50"}, {"exchange.joiner_moments", "\"zero\""}}));
    ChildProcess east = start(config, "east");
    ASSERT_TRUE(runs_.wait_for_text("east", "round 1 committed")) << runs_.output("east");
    ChildProcess west = start(config, "west");
    const auto first = runs_.finish("east", east), late = runs_.finish("west", west);
    EXPECT_TRUE(late.status.ok()) << late.log;
    EXPECT_EQ(late.hash(), first.hash());
    EXPECT_NE(late.log.find("took over the state"), std::string::npos) << late.log;
    EXPECT_EQ(late.log.find("inner moments"), std::string::npos) << late.log;
}

TEST_F(SeparateSites, a_killed_coordinator_comes_back_for_the_sites_of_other_machines) {
    const auto config = runs_.write_config({"east", "west"}, settings({{"timeouts.reconnect_ms", "3000"}}));
    ChildProcess east = start(config, "east"), west = start(config, "west");
    ASSERT_TRUE(runs_.wait_for_text("west", "round 1 committed")) << runs_.output("west");
    const auto coordinators = find_processes({"atoll", "coordinator --config", runs_.directory("east").string()});
    ASSERT_EQ(coordinators.size(), 1u);
    ASSERT_EQ(::kill(coordinators.front(), SIGKILL), 0);
    const auto first = runs_.finish("east", east), second = runs_.finish("west", west);
    EXPECT_TRUE(first.status.ok()) << first.log;
    EXPECT_TRUE(second.status.ok()) << second.log;
    EXPECT_EQ(first.summary.at("rounds"), 40);
    EXPECT_EQ(first.hash(), second.hash());

    // A site that is started once more, alone, sees that there is nothing left to do.
    ChildProcess once_more = start(config, "west");
    const auto again = runs_.finish("west", once_more);
    EXPECT_TRUE(again.status.ok()) << again.log;
    EXPECT_NE(again.log.find("the run's last: there is nothing left to do"), std::string::npos) << again.log;
    EXPECT_EQ(again.log.find("waiting for the coordinator", second.log.size()), std::string::npos) << again.log;
    EXPECT_EQ(again.hash(), second.hash());
}

}  // namespace
}  // namespace atl::test
