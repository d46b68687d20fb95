// The vocabulary of src/core: failures say what and where, hashes and random numbers are pinned to published
// vectors, files change whole or not at all.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/buffer_view.h"
#include "core/check.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/hash.h"
#include "core/ids.h"
#include "core/random.h"
#include "support/fault_file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

TEST(Check, a_failed_comparison_names_place_condition_and_both_operands) {
    try {
        ATOLL_CHECK_EQ(1 + 1, 3, "site {}", SiteId(4));
        FAIL();
    } catch (const CheckError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("core_test.cpp"), std::string::npos) << message;
        EXPECT_NE(message.find("1 + 1 == 3"), std::string::npos) << message;
        EXPECT_NE(message.find("2 against 3 site 4"), std::string::npos) << message;
    }
}

TEST(Ids, differ_in_type_and_order_by_value) {
    static_assert(!std::is_convertible_v<Rank, SiteId>);
    static_assert(!std::is_convertible_v<int, Rank>);
    EXPECT_LT(Rank(1), Rank(2));
    EXPECT_EQ(Round(6).next(), Round(7));
}

TEST(BufferView, refuses_a_cast_to_elements_of_another_size) {
    std::vector<float> values(4);
    EXPECT_EQ(view_of(values).bytes(), 16);
    EXPECT_THROW(view_of(values).as<double>(), CheckError);
}

TEST(Hash, blake2b_and_xxh3_match_published_vectors) {
    // RFC 7693's construction at 256 bits, and XXH3 of the empty string with seed 0.
    EXPECT_EQ(blake2b_hex(std::as_bytes(std::span("abc", 3))),
              "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    EXPECT_EQ(xxh3_128({}).hex(), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(hash128_from_hex(xxh3_128({}).hex()), xxh3_128({}));
    EXPECT_THROW(hash128_from_hex("12"), CorruptDataError);
}

TEST(Random, philox_matches_the_published_known_answers) {
    // Random123's kat_vectors for philox4x32-10.
    using Counter = std::array<std::uint32_t, 4>;
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, normal_numbers_have_mean_zero_and_variance_one) {
    const RandomStream stream(7, "weights");
    double sum = 0, square = 0;
    const int count = 20'000;
    for (int i = 0; i < count; ++i) {
        const double x = stream.normal(i);
        sum += x;
        square += x * x;
    }
    EXPECT_NEAR(sum / count, 0, 0.03);
    EXPECT_NEAR(square / count, 1, 0.05);
}

TEST(Random, normal_numbers_are_the_inverse_of_the_distribution_function) {
    const RandomStream stream(7, "weights");
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        const double x = stream.normal(i);
        const double below = (static_cast<double>(stream.bits(i) >> 11) + 0.5) * 0x1.0p-53;
        EXPECT_NEAR(std::erfc(-x / std::sqrt(2.0)) / 2 / below, 1, 1e-13) << i;
    }
}

TEST(Random, a_permutation_visits_every_position_once) {
    for (const std::uint64_t size : {1, 2, 3, 17, 1000}) {
        const RandomPermutation permutation(3, 5, size);
        std::set<std::uint64_t> seen;
        for (std::uint64_t i = 0; i < size; ++i) seen.insert(permutation(i));
        EXPECT_EQ(seen.size(), size);
        EXPECT_EQ(*seen.rbegin(), size - 1);
    }
}

TEST(FileSystem, an_atomic_write_on_a_full_disk_leaves_the_old_content) {
    const test::TemporaryDirectory directory;
    test::FaultFileSystem files;
    const auto path = directory.path() / "state";
    files.write_text_atomically(path, "old");
    files.limit_bytes(2);
    EXPECT_THROW(files.write_text_atomically(path, "newer"), StorageError);
    EXPECT_EQ(files.read_text(path), "old");
    files.limit_bytes({});
    files.write_text_atomically(path, "newer");
    EXPECT_EQ(files.read_text(path), "newer");
}

TEST(FileSystem, errors_name_the_path_and_the_reason) {
    const auto files = make_system_file_system();
    try {
        files->read_text("/nonexistent/file");
        FAIL();
    } catch (const StorageError& error) {
        EXPECT_STREQ(error.what(), "[files] can't open /nonexistent/file: No such file or directory");
    }
}

TEST(UserError, carries_every_problem_in_one_report) {
    const UserError error(std::vector<std::string>{"a.toml:1: first", "a.toml:2: second"});
    EXPECT_EQ(error.problems().size(), 2u);
    EXPECT_STREQ(error.what(), "a.toml:1: first\na.toml:2: second");
}

}  // namespace
}  // namespace atl
