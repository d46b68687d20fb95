// Compressed contributions in what they are for: means over sites and rounds. Seeds are fixed; bounds are the laws'.
#include <gtest/gtest.h>

#include <cmath>

#include "codec/codec.h"
#include "core/random.h"
#include "outer/method.h"

namespace atl {
namespace {

using Vector = std::vector<float>;

Vector there_and_back(std::string_view codec, const Vector& values) {
    const Codec& with = codec_from_name(codec);
    std::vector<std::byte> body(static_cast<std::size_t>(with.body_bytes(std::ssize(values))));
    EXPECT_TRUE(with.encode(values, body)) << codec;
    Vector decoded(values.size());
    with.decode({body, std::ssize(values)}, 0, decoded);
    return decoded;
}

Vector normals(std::uint64_t stream, std::size_t count) {
    const RandomStream random(23, stream);
    Vector values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.normal(i));
    return values;
}

double norm(const Vector& values) {
    double sum = 0;
    for (const float value : values) sum += double{value} * value;
    return std::sqrt(sum);
}

Vector mean_of(const std::vector<Vector>& all) {
    std::vector<WeightedDelta> contributions;
    for (const Vector& one : all) contributions.push_back({one, 1});
    Vector mean(all.front().size());
    weighted_mean(contributions, mean);
    return mean;
}

// Relative error of the mean of so many vectors, half of each common to all: gathered, each is encoded once; through
// owners, the mean is encoded as well.
struct MeanErrors {
    double gathered = 0, through_owners = 0;
};
MeanErrors mean_errors(std::string_view codec, std::uint64_t sites) {
    const Vector common = normals(0, 1 << 16);
    std::vector<Vector> exact, coded;
    for (std::uint64_t site = 0; site < sites; ++site) {
        Vector values = normals(1 + site, common.size());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += common[i];
        coded.push_back(there_and_back(codec, values));
        exact.push_back(std::move(values));
    }
    const Vector mean = mean_of(exact), gathered = mean_of(coded);
    const Vector owned = there_and_back(mean_codec(codec_from_name(codec)).name(), gathered);
    const auto error = [&](const Vector& approximate) {
        Vector difference(mean.size());
        for (std::size_t i = 0; i < mean.size(); ++i) difference[i] = approximate[i] - mean[i];
        return norm(difference) / norm(mean);
    };
    return {error(gathered), error(owned)};
}

TEST(CompressedMeans, err_less_the_more_sites_there_are_and_owners_add_no_more_than_their_own_code) {
    struct Row {
        std::uint64_t sites;
        double int8_gathered, int8_owned, e3m0_gathered;
    };
    for (const Row& row : {Row{2, 0.0060, 0.0094, 0.160}, Row{4, 0.0046, 0.0086, 0.126}, Row{8, 0.0034, 0.0081, 0.097},
                           Row{14, 0.0027, 0.0078, 0.078}}) {
        const MeanErrors int8 = mean_errors("int8", row.sites), e3m0 = mean_errors("e3m0", row.sites);
        EXPECT_LT(int8.gathered, 1.3 * row.int8_gathered) << row.sites;
        EXPECT_LT(int8.through_owners, 1.3 * row.int8_owned) << row.sites;
        EXPECT_LT(e3m0.gathered, 1.3 * row.e3m0_gathered) << row.sites;
        // The owner's code has eight bits, so a narrow contribution is what is lost.
        EXPECT_LT(e3m0.through_owners, 1.05 * e3m0.gathered + 0.008) << row.sites;
    }
}

// Σ q = Σ Δ − e − (1 − β)·Σ of the residuals before each round.
TEST(ErrorFeedback, keeps_what_was_sent_and_what_is_still_here_in_balance_for_every_share_of_the_residual) {
    for (const char* codec : {"sign", "top_k_64"})
        for (const float beta : {1.0F, 0.95F}) {
            constexpr std::size_t kElements = 8192;
            std::vector<double> balance(kElements);
            Vector residual(kElements);
            for (std::uint64_t round = 0; round < 30; ++round) {
                Vector h = normals(100 + round, kElements);
                for (std::size_t i = 0; i < kElements; ++i) {
                    balance[i] += double{h[i]} - (1 - double{beta}) * residual[i];
                    h[i] += beta * residual[i];
                }
                const Vector sent = there_and_back(codec, h);
                for (std::size_t i = 0; i < kElements; ++i) {
                    residual[i] = h[i] - sent[i];
                    balance[i] -= sent[i];
                }
            }
            for (std::size_t i = 0; i < kElements; ++i)
                ASSERT_NEAR(balance[i], residual[i], 1e-4) << codec << " share " << beta << " element " << i;
        }
}

TEST(ErrorFeedback, sends_a_value_that_never_changes_within_a_few_times_as_many_rounds_as_chunks_of_k_fit_into_one) {
    constexpr std::size_t kElements = 4096, kKept = 64;
    const Vector delta = normals(7, kElements);
    Vector residual(kElements);
    std::vector<int> sent_in(kElements, -1);
    constexpr int kRounds = 8 * kElements / kKept;
    for (int round = 0; round < kRounds; ++round) {
        Vector h = delta;
        for (std::size_t i = 0; i < kElements; ++i) h[i] += residual[i];
        const Vector sent = there_and_back("top_k_64", h);
        for (std::size_t i = 0; i < kElements; ++i) {
            residual[i] = h[i] - sent[i];
            if (sent[i] != 0 && sent_in[i] < 0) sent_in[i] = round;
        }
    }
    for (std::size_t i = 0; i < kElements; ++i)
        EXPECT_TRUE(sent_in[i] >= 0 || std::abs(delta[i]) <= 0.25F) << "element " << i << " is " << delta[i];
}

// All of each chunk is sent, and two magnitudes are coded exactly: nothing is lost.
TEST(SparseLoco, that_sends_everything_is_averaging) {
    constexpr std::size_t kElements = 4096;
    const Vector start = normals(1, kElements);
    std::vector<Vector> deltas;
    for (const std::uint64_t site : {2, 3}) {
        Vector& delta = deltas.emplace_back(normals(site, kElements));
        for (float& value : delta) value = std::copysign(std::abs(value) < 0.7F ? 0.25F : 1.0F, value);
    }
    const auto anchor_after = [&](const char* name, const Vector& mean) {
        const OuterMethod& method = outer_method(name);
        const OuterRule rule = method.rule(0, false);
        OuterFragment fragment({{"w", 0, std::ssize(start)}}, method.buffers(rule));
        std::ranges::copy(start, fragment.anchor().begin());
        Vector local(kElements);
        method.apply(fragment, {.rule = rule, .lr = 1}, {.mean = mean}, local);
        EXPECT_EQ(local, Vector(fragment.anchor().begin(), fragment.anchor().end()));
        return local;
    };
    std::vector<Vector> sent;
    for (const Vector& delta : deltas) sent.push_back(there_and_back("top_k_4096", delta));
    EXPECT_EQ(sent, deltas);
    EXPECT_EQ(anchor_after("sparse_loco", mean_of(sent)), anchor_after("average", mean_of(deltas)));
}

}  // namespace
}  // namespace atl
