// Profiles of ops: what a key depends on, that files read back as they were written, and what is said about wrong ones.
#include "program/op_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "program/text.h"

namespace atl {
namespace {

using testing::HasSubstr;

Program two_layers() {
    return parse_program(
        "program 1 rank 0\n"
        "group tp 0 1\n"
        "value x input device f32 [8,4]\n"
        "value w parameter device f32 [6,4]\n"
        "value g gradient device f32 [6,4]\n"
        "value y0 activation device f32 [8,6]\n"
        "value y1 activation device f32 [8,6]\n"
        "op 0 linear x w -> y0 layer=0\n"
        "op 1 linear x w -> y1 layer=1\n"
        "op 2 linear_backward_weight y0 x -> g accumulate=false\n"
        "op 3 linear_backward_weight y1 x -> g accumulate=true\n"
        "op 4 all_reduce g -> g resource=link_intra bytes=96 group=tp sequence=0\n"
        "op 5 all_reduce g -> g resource=link_inter bytes=96 group=tp sequence=1\n");
}

OpProfile profile_of(const Program& program) {
    OpProfile profile{.fingerprint = {.model = "llama 2 x 4",
                                      .tp = 2,
                                      .micro_batch_tokens = 8,
                                      .links = "gloo 1gbit",
                                      .library_version = "2.11.0"},
                      .provenance = {"a host", "2026-01-02T03:04:05Z", 2},
                      .ops = {},
                      .slowdowns = {{.first = {OpFamily::matmul, Resource::compute},
                                     .second = {OpFamily::reduce, Resource::link_intra},
                                     .first_slowdown = 1.1,
                                     .second_slowdown = 1.25,
                                     .samples = 20}}};
    double seconds = 0.001;
    for (const auto& op : program.ops) profile.ops[key_of(program, op)] = {seconds *= 2, 0.9 * seconds, seconds / 10, 20};
    return profile;
}

std::string error_of(const std::string& text) {
    try {
        op_profile_from_json(text, "profile.json");
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
}

TEST(OpProfile, layers_of_one_shape_share_a_key_and_adding_or_another_link_makes_another) {
    const auto program = two_layers();
    const auto key = [&](int op) { return key_of(program, program.op(OpId(op))); };
    EXPECT_EQ(key(0), key(1));
    EXPECT_EQ(key(0).shapes, "f32 [8,4] [6,4] > [8,6]");
    EXPECT_NE(key(2), key(3));
    EXPECT_EQ(key(4).shapes, "96 bytes group 2");
    EXPECT_NE(key(4), key(5));
}

TEST(OpProfile, gives_every_op_its_mean_and_names_all_that_it_lacks) {
    const auto program = two_layers();
    auto profile = profile_of(program);
    const auto seconds = op_seconds(program, profile);
    EXPECT_EQ(seconds[0], seconds[1]);
    EXPECT_EQ(seconds[4], profile.ops.at(key_of(program, program.op(OpId(4)))).mean_seconds);
    profile.ops.erase(key_of(program, program.op(OpId(0))));
    profile.ops.erase(key_of(program, program.op(OpId(5))));
    try {
        op_seconds(program, profile);
        FAIL();
    } catch (const UserError& error) {
        ASSERT_EQ(error.problems().size(), 2U) << "both layers lack the same";
        EXPECT_THAT(error.problems()[0], HasSubstr("all_reduce (link_inter, 96 bytes group 2)"));
        EXPECT_THAT(error.problems()[1], HasSubstr("linear (compute, f32 [8,4] [6,4] > [8,6])"));
    }
}

TEST(OpProfile, timings_are_the_middle_steps_mean_and_the_median_with_its_quartile_range) {
    EXPECT_EQ(timing_of({{5, 1, 4, 2, 3}}), (OpTiming{3, 3, 2, 5}));
    EXPECT_EQ(timing_of({{7}}), (OpTiming{7, 7, 0, 1}));
    // A slow turn in each step counts, a slow step does not.
    EXPECT_EQ(timing_of({{1, 1, 4}, {1, 1, 4}, {100, 100, 100}}).mean_seconds, 2);
}

TEST(OpProfile, reads_back_as_it_was_written) {
    const auto profile = profile_of(two_layers());
    EXPECT_EQ(op_profile_from_json(to_json(profile), "profile.json"), profile);
}

TEST(OpProfile, wrong_files_are_named_with_the_field_at_fault) {
    const auto text = to_json(profile_of(two_layers()));
    EXPECT_THAT(error_of("{"), HasSubstr("profile.json: not a JSON object"));
    EXPECT_THAT(error_of("{}"), HasSubstr("profile_format is missing"));
    EXPECT_THAT(error_of(replaced(text, "\"profile_format\": 2", "\"profile_format\": 9")),
                HasSubstr("profile_format 9 is unknown"));
    EXPECT_THAT(error_of(replaced(text, "\"tp\": 2", "\"tp\": \"two\"")),
                HasSubstr("fingerprint: tp = \"two\" is of the wrong type"));
    EXPECT_THAT(error_of(replaced(text, "\"family\": \"matmul\"", "\"family\": \"madmul\"")),
                HasSubstr("slowdowns[0]: first: family \"madmul\" is unknown"));
    EXPECT_THAT(error_of(replaced(text, "\"first_slowdown\": 1.1", "\"first_slowdown\": 0")),
                HasSubstr("first_slowdown = 0 must be above 0"));
}

TEST(OpProfile, fingerprints_tell_the_first_thing_that_differs) {
    const ProfileFingerprint profile{.model = "m", .tp = 2, .links = "gloo"};
    ProfileFingerprint here = profile;
    EXPECT_EQ(difference(here, profile), "");
    here.links = "gloo 1gbit";
    EXPECT_EQ(difference(here, profile), "links is gloo 1gbit, the profile's gloo");
    here.tp = 4;
    EXPECT_EQ(difference(here, profile), "tp is 4, the profile's 2");
}

TEST(OverlapModel, knows_both_sides_of_a_pair_and_takes_unknown_pairs_as_free) {
    const auto profile = profile_of(two_layers());
    const OverlapModel model(profile.slowdowns);
    const OpClass matmul{OpFamily::matmul, Resource::compute}, reduce{OpFamily::reduce, Resource::link_intra};
    EXPECT_EQ(model.slowdown(matmul, reduce), 1.1);
    EXPECT_EQ(model.slowdown(reduce, matmul), 1.25);
    EXPECT_EQ(model.slowdown(matmul, {OpFamily::reduce, Resource::link_inter}), 1);
    EXPECT_FALSE(model.slows_nothing());
    EXPECT_TRUE(OverlapModel().slows_nothing());
}

}  // namespace
}  // namespace atl
