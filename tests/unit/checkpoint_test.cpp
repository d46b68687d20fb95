// Checkpoints: what is written comes back under any cut into boxes; sites and ranks share a step; incomplete
// parts are seen; old steps are pruned.
#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <numeric>

#include "layout/box_copy.h"
#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/random.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

class Checkpoint : public testing::Test {
  protected:
    std::filesystem::path checkpoints() const { return directory_.path() / "checkpoints"; }
    std::filesystem::path step(std::int64_t n) const { return checkpoint_directory(checkpoints(), Step(n)); }

    CheckpointMetadata metadata(std::int64_t n) const {
        return {.run_id = "run", .step = Step(n), .round = Round(n / 10), .incarnation = 3};
    }
    void write_scalar(std::int64_t n, const CheckpointPart& part, float value = 1) {
        CheckpointWriter writer(*files_, step(n), part, metadata(n));
        writer.add("parameters/x", {}, view_of(std::span(&value, 1)));
        writer.commit();
    }
    std::vector<std::int64_t> steps_complete_for(const std::string& site) const {
        std::vector<std::int64_t> steps;
        for (const auto& found : find_checkpoints(*files_, checkpoints()))
            if (found.complete_for(site)) steps.push_back(found.step.value());
        return steps;
    }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

std::vector<float> counting(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
}

TEST_F(Checkpoint, gives_back_tensors_bytes_and_metadata) {
    std::vector<float> weights = counting(6);
    std::vector<double> wide = {1.0 / 3, -2};
    const std::string packet = "opaque";
    CheckpointMetadata written = metadata(40);
    written.seed = ~0ull;
    written.optimizer_step = 39;
    written.model = R"({"hidden":64,"norm_epsilon":1e-05})";
    written.data_cursor = R"({"block":7})";
    written.extra = R"({"note":"é"})";
    {
        CheckpointWriter writer(*files_, step(40), {"a"}, written);
        writer.add("parameters/w", {2, 3}, view_of(weights));
        writer.add("moment1/w", {2}, view_of(wide));
        writer.add_bytes("bytes/pending", std::as_bytes(std::span(packet)));
        writer.add("parameters/none", {0, 4}, view_of(std::span<float>()));
        writer.commit();
    }
    const CheckpointReader reader(*files_, step(40));
    EXPECT_EQ(reader.metadata().run_id, "run");
    EXPECT_EQ(reader.metadata().step, Step(40));
    EXPECT_EQ(reader.metadata().round, Round(4));
    EXPECT_EQ(reader.metadata().incarnation, 3);
    EXPECT_EQ(reader.metadata().seed, ~0ull);
    EXPECT_EQ(reader.metadata().optimizer_step, 39);
    EXPECT_EQ(reader.metadata().model, written.model);
    EXPECT_EQ(reader.metadata().data_cursor, written.data_cursor);
    EXPECT_EQ(reader.metadata().extra, written.extra);

    std::vector<float> read_weights(6);
    reader.read("parameters/w", read_weights);
    EXPECT_EQ(read_weights, weights);
    std::vector<double> read_wide(2);
    reader.read("moment1/w", read_wide);
    EXPECT_EQ(read_wide, wide);
    std::vector<float> narrowed(2);
    reader.read("moment1/w", narrowed);
    EXPECT_EQ(narrowed, (std::vector<float>{1.0f / 3, -2}));
    const auto bytes = reader.read_bytes("bytes/pending");
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), packet);
    reader.read("parameters/none", std::span<float>());
    reader.verify();

    const auto parameters = reader.section("parameters");
    ASSERT_EQ(parameters.size(), 2u);
    EXPECT_EQ(parameters[1].name, "w");
    EXPECT_EQ(parameters[1].shape, (Shape{2, 3}));
    EXPECT_TRUE(reader.contains("moment1/w"));
    EXPECT_FALSE(reader.contains("moment2/w"));
    EXPECT_THROW(reader.tensor("moment2/w"), CorruptDataError);
}

// Cuts a box at random points until it is small, with some parts given twice: boxes as a layout with replicas
// would hold them.
void cut_at_random(const Box& box, const RandomStream& random, std::uint64_t& index, std::vector<Box>& out) {
    for (std::size_t d = 0; d < box.ranges.size(); ++d) {
        const Range range = box.ranges[d];
        if (range.size() < 2 || random.uniform(index++) < 0.4) continue;
        const auto cut =
            range.begin + 1 +
            static_cast<std::int64_t>(random.below(index++, static_cast<std::uint64_t>(range.size() - 1)));
        Box low = box, high = box;
        low.ranges[d].end = high.ranges[d].begin = cut;
        cut_at_random(low, random, index, out);
        cut_at_random(high, random, index, out);
        return;
    }
    out.push_back(box);
    if (random.uniform(index++) < 0.2) out.push_back(box);
}

Box random_box(const Shape& shape, const RandomStream& random, std::uint64_t& index) {
    Box box;
    for (const auto extent : shape) {
        const auto size = static_cast<std::uint64_t>(extent);
        const auto a = static_cast<std::int64_t>(random.below(index++, size));
        const auto b = static_cast<std::int64_t>(random.below(index++, size));
        box.ranges.push_back({std::min(a, b), std::max(a, b) + 1});
    }
    return box;
}

std::vector<float> values_in(const Box& box, const Shape& shape, std::span<const float> whole) {
    std::vector<float> values(static_cast<std::size_t>(box.elements()));
    copy_box(whole, Box::whole(shape), std::span(values), box, box);
    return values;
}

TEST_F(Checkpoint, reads_any_box_from_any_cut_over_any_number_of_ranks) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const RandomStream random(seed, "boxes");
        std::uint64_t index = 0;
        Shape shape(1 + random.below(index++, 3));
        for (auto& extent : shape) extent = 1 + static_cast<std::int64_t>(random.below(index++, 9));
        const std::vector<float> whole = counting(element_count(shape));
        std::vector<Box> boxes;
        cut_at_random(Box::whole(shape), random, index, boxes);
        const auto ranks = static_cast<std::int32_t>(1 + random.below(index++, 3));
        const auto n = static_cast<std::int64_t>(seed);
        for (std::int32_t rank = 0; rank < ranks; ++rank) {
            CheckpointWriter writer(*files_, step(n), {"a", Rank(rank), ranks}, metadata(n));
            for (std::size_t i = 0; i < boxes.size(); ++i) {
                if (static_cast<std::int32_t>(i) % ranks != rank) continue;
                auto values = values_in(boxes[i], shape, whole);
                writer.add("parameters/w", shape, boxes[i], view_of(values));
            }
            writer.commit();
        }
        const CheckpointReader reader(*files_, step(n));
        EXPECT_EQ(reader.ranks(), ranks);
        for (int repeat = 0; repeat < 5; ++repeat) {
            const Box box = random_box(shape, random, index);
            std::vector<float> values(static_cast<std::size_t>(box.elements()));
            reader.read("parameters/w", box, values);
            EXPECT_EQ(values, values_in(box, shape, whole)) << to_string(box);
            std::vector<double> wide(values.size());
            reader.read("parameters/w", box, wide);
            EXPECT_TRUE(std::equal(wide.begin(), wide.end(), values.begin())) << to_string(box);
        }
    }
}

TEST_F(Checkpoint, names_the_part_of_a_tensor_that_no_rank_wrote) {
    std::vector<float> half = counting(4);
    CheckpointWriter writer(*files_, step(1), {"a"}, metadata(1));
    writer.add("parameters/w", {4, 2}, Box{{{0, 2}, {0, 2}}}, view_of(half));
    writer.commit();
    const CheckpointReader reader(*files_, step(1));
    std::vector<float> upper(4), whole(8);
    reader.read("parameters/w", Box{{{0, 2}, {0, 2}}}, upper);
    EXPECT_EQ(upper, half);
    try {
        reader.read("parameters/w", whole);
        FAIL();
    } catch (const CorruptDataError& error) {
        EXPECT_NE(std::string(error.what()).find("no piece of parameters/w holds [2:4,0:2]"),
                  std::string::npos)
            << error.what();
    }
}

TEST_F(Checkpoint, a_site_is_complete_when_all_its_ranks_wrote_the_same_point) {
    write_scalar(5, {"a", Rank(1), 2});
    EXPECT_TRUE(steps_complete_for("a").empty());
    write_scalar(5, {"a", Rank(0), 2});
    EXPECT_EQ(steps_complete_for("a"), (std::vector<std::int64_t>{5}));

    CheckpointMetadata other_life = metadata(5);
    other_life.incarnation = 4;
    CheckpointWriter writer(*files_, step(5), {"a", Rank(1), 2}, other_life);
    writer.commit();
    EXPECT_TRUE(steps_complete_for("a").empty());
    try {
        CheckpointReader reader(*files_, step(5));
        FAIL();
    } catch (const CorruptDataError& error) {
        EXPECT_NE(std::string(error.what()).find("rank 1 wrote another"), std::string::npos) << error.what();
    }
}

TEST_F(Checkpoint, sites_of_one_step_stand_side_by_side_and_steps_newest_first) {
    write_scalar(9, {"a"});
    write_scalar(10, {"b"}, 2);
    write_scalar(10, {"a"}, 3);
    const auto found = find_checkpoints(*files_, checkpoints());
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].step, Step(10));
    ASSERT_EQ(found[0].sites.size(), 2u);
    EXPECT_TRUE(found[0].complete_for("b"));
    EXPECT_FALSE(found[1].complete_for("b"));
    float value = 0;
    CheckpointReader(*files_, found[0].sites[1].path).read("parameters/x", std::span(&value, 1));
    EXPECT_EQ(value, 2);
    CheckpointReader(*files_, directory_.path()).read("parameters/x", std::span(&value, 1));
    EXPECT_EQ(value, 3) << "a run's directory stands for the first site of its newest checkpoint";
}

TEST_F(Checkpoint, writing_a_step_again_replaces_it_and_leaves_no_other_files) {
    write_scalar(5, {"a"}, 1);
    write_scalar(5, {"a"}, 2);
    float value = 0;
    CheckpointReader(*files_, step(5)).read("parameters/x", std::span(&value, 1));
    EXPECT_EQ(value, 2);
    EXPECT_EQ(files_->list(step(5) / "site_a" / "rank_0").size(), 2u);
}

TEST_F(Checkpoint, an_uncommitted_writer_leaves_nothing) {
    {
        CheckpointWriter writer(*files_, step(5), {"a"}, metadata(5));
        writer.add_bytes("bytes/x", {});
    }
    EXPECT_TRUE(files_->list(step(5) / "site_a" / "rank_0").empty());
    EXPECT_TRUE(steps_complete_for("a").empty());
}

TEST_F(Checkpoint, pruning_keeps_the_newest_complete_ones_of_this_site_only) {
    for (const std::int64_t n : {1, 2, 3, 4}) write_scalar(n, {"a"});
    write_scalar(1, {"b"});
    write_scalar(5, {"a", Rank(0), 2});  // incomplete: newer than all, not counted, not removed
    prune_checkpoints(*files_, checkpoints(), "a", 2);
    EXPECT_EQ(steps_complete_for("a"), (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(steps_complete_for("b"), (std::vector<std::int64_t>{1}));
    EXPECT_TRUE(files_->exists(step(5)));
    EXPECT_FALSE(files_->exists(step(2))) << "the last site's part takes the step with it";
    EXPECT_THROW(prune_checkpoints(*files_, checkpoints(), "a", 1), CheckError);
}

TEST_F(Checkpoint, reading_what_is_not_there_says_so) {
    const auto expect_problem = [&](const std::filesystem::path& path, const std::string& text) {
        try {
            CheckpointReader reader(*files_, path);
            ADD_FAILURE() << path;
        } catch (const UserError& error) {
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    };
    expect_problem(checkpoints(), "doesn't exist");
    expect_problem(directory_.path(), "no checkpoint in");
    write_scalar(5, {"a", Rank(0), 2});
    EXPECT_THROW(CheckpointReader(*files_, step(5)), CorruptDataError);  // rank_1 is missing
    EXPECT_TRUE(find_checkpoints(*files_, directory_.path() / "none").empty());
}

TEST_F(Checkpoint, a_newer_one_that_is_broken_is_passed_over_by_name) {
    for (const std::int64_t number : {4, 6, 8}) write_scalar(number, {"a"});
    EXPECT_TRUE(CheckpointReader(*files_, checkpoints()).passed_over().empty());
    files_->write_text_atomically(step(8) / "site_a" / "rank_0" / "manifest.json", "{}");
    const CheckpointReader reader(*files_, checkpoints());
    EXPECT_EQ(reader.metadata().step, Step(6));
    ASSERT_EQ(reader.passed_over().size(), 1U);
    EXPECT_NE(reader.passed_over()[0].find("step_8/site_a is not complete"), std::string::npos)
        << reader.passed_over()[0];
}

TEST_F(Checkpoint, refuses_misuse) {
    std::vector<float> values(4);
    EXPECT_THROW(CheckpointWriter(*files_, step(1), {"a/b"}, metadata(1)), CheckError);
    EXPECT_THROW(CheckpointWriter(*files_, step(1), {"a", Rank(2), 2}, metadata(1)), CheckError);
    CheckpointWriter writer(*files_, step(1), {"a"}, metadata(1));
    EXPECT_THROW(writer.add("parameters/w", {5}, view_of(values)), CheckError);
    EXPECT_THROW(writer.add("parameters/w", {5}, Box{{{2, 6}}}, view_of(values)), CheckError);
    writer.commit();
    EXPECT_THROW(writer.commit(), CheckError);
    EXPECT_THROW(writer.add("parameters/w", {4}, view_of(values)), CheckError);
}

TEST(ParametersHash, runs_over_the_values_in_the_order_of_names) {
    const std::vector<float> first = {1, 2}, second = {3};
    const std::vector<float> together = {1, 2, 3};
    EXPECT_EQ(parameters_blake2b({{"b", second}, {"a", first}}),
              blake2b_hex(std::as_bytes(std::span(together))));
    EXPECT_NE(parameters_blake2b({{"a", second}, {"b", first}}),
              parameters_blake2b({{"a", first}, {"b", second}}));
}

}  // namespace
}  // namespace atl
