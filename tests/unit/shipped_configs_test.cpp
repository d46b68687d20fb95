// Every config that ships loads without a problem or a notice; only the data it names need not be there yet.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "config/load_config.h"

namespace atl {
namespace {

std::filesystem::path shipped(const std::string& name) {
    return std::filesystem::path(std::getenv("ATOLL_SOURCE_DIR")) / "configs" / name;
}

LoadedConfig load(const std::filesystem::path& file) {
    return load_config(*make_system_file_system(), {.file = file, .overrides = {}, .check_files = false});
}

TEST(ShippedConfigs, load_and_need_nothing_spelt_in_an_old_way) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(shipped(""))) {
        if (entry.path().extension() != ".toml") continue;
        names.insert(entry.path().filename());
        EXPECT_TRUE(load(entry.path()).notices.empty()) << entry.path();
    }
    EXPECT_TRUE(names.contains("quickstart.toml") && names.contains("two_sites.toml")) << "in configs/";
}

TEST(ShippedConfigs, of_the_speed_comparison_have_the_published_shapes) {
    const auto shape = [](const char* name) {
        const RunConfig config = load(shipped("bench") / name).config;
        const ModelConfig& model = config.model;
        return std::vector{model.layers,
                           model.hidden,
                           model.heads,
                           model.ffn,
                           model.vocab,
                           model.context,
                           config.train.sequences_per_step};
    };
    using Shape = std::vector<std::int64_t>;
    EXPECT_EQ(shape("s1.toml"), (Shape{4, 256, 4, 688, 256, 256, 8}));
    EXPECT_EQ(shape("s2.toml"), (Shape{6, 512, 8, 1376, 4096, 512, 4}));
    EXPECT_EQ(shape("s3.toml"), (Shape{12, 768, 12, 2048, 32000, 1024, 1}));
}

TEST(ShippedConfigs, of_two_sites_have_two) {
    EXPECT_EQ(load(shipped("quickstart.toml")).config.sites.size(), 2u);
    EXPECT_EQ(load(shipped("two_sites.toml")).config.sites.size(), 2u);
}

}  // namespace
}  // namespace atl
