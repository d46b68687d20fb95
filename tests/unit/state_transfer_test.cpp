// A joiner fetches the outer state from several donors: complete, right, or not at all.
#include "exchange/state_transfer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "comm/site/sim.h"
#include "core/random.h"
#include "exchange/moments_donor.h"
#include "support/site_transport.h"

namespace atl {
namespace {

using test::transport_options;

constexpr std::size_t kTheta = 300'000;  // five pieces, the last one short, cut across the parts
constexpr std::size_t kMomentum = 10'000;

struct State {
    explicit State(std::uint64_t seed) : theta(kTheta), momentum(kMomentum) {
        const RandomStream random(seed, "state");
        for (std::size_t i = 0; i < kTheta; ++i) theta[i] = static_cast<float>(random.uniform(i));
        for (std::size_t i = 0; i < kMomentum; ++i)
            momentum[i] = static_cast<float>(random.uniform(kTheta + i));
    }
    bool operator==(const State&) const = default;
    std::vector<float> theta;
    std::vector<float> momentum;
};

StateVersion version(std::int64_t round) {
    return {Round(round), Step(10 * round), {1, static_cast<std::uint64_t>(round)}};
}

class StateTransferTest : public testing::Test {
  protected:
    StateTransferTest() {
        SimulatedLink link;
        link.bytes_per_second = 1e7;
        link.most_delay = std::chrono::milliseconds(5);
        network_ = std::make_unique<SimulatedNetwork>(1, link);
        for (int site = 0; site < 3; ++site) {
            transports_.push_back(network_->join(transport_options(site)));
            std::vector<Peer> peers;
            for (int other = 0; other < 3; ++other) {
                if (other != site) peers.push_back({SiteId(other), Incarnation(), ""});
            }
            transports_.back()->set_peers(peers);
        }
        for (auto& published : donors_) published.emplace();
    }

    void publish(int donor, std::int64_t round, const State& state) {
        donors_[static_cast<std::size_t>(donor)]->publish(version(round), {state.theta, state.momentum});
    }
    // Site 2 fetches from sites 0 and 1.
    void begin() {
        FetchRequest request;
        request.donors = {SiteId(0), SiteId(1)};
        request.parts = {fetched_.theta, fetched_.momentum};
        request.deadline = network_->clock().after(Milliseconds(20'000));
        request.done = [this](std::optional<StateVersion> version, const std::string& problem) {
            ++calls_;
            result_ = std::move(version);
            problem_ = problem;
        };
        fetcher_.begin(std::move(request), network_->clock().now());
    }
    bool run_until(const std::function<bool()>& done) {
        const TimePoint end = network_->clock().after(Milliseconds(60'000));
        while (!done() && network_->clock().now() < end) {
            for (std::size_t site = 0; site < 2; ++site) {
                if (!transports_[site]) continue;
                while (auto event = transports_[site]->poll({})) {
                    const auto* frame = std::get_if<Frame>(&*event);
                    if (frame == nullptr) continue;
                    for (Frame& answer : donors_[site]->answer(*frame)) {
                        if (corrupt_ == static_cast<int>(site) && answer.kind == FrameKind::state_piece) {
                            std::vector<std::byte> zeros(answer.body.size());
                            answer.body = Payload::own(std::move(zeros));
                        }
                        pieces_ += answer.kind == FrameKind::state_piece;
                        (void)transports_[site]->send(std::move(answer));
                    }
                }
            }
            while (auto event = transports_[2]->poll({})) {
                if (const auto* frame = std::get_if<Frame>(&*event)) fetcher_.take(*frame);
            }
            fetcher_.step(*transports_[2], network_->clock().now());
            network_->advance(network_->clock().after(Milliseconds(2)));
        }
        return done();
    }
    bool finished() const { return calls_ > 0; }

    std::unique_ptr<SimulatedNetwork> network_;
    std::vector<std::unique_ptr<SiteTransport>> transports_;
    std::array<std::optional<PublishedState>, 2> donors_;
    StateFetcher fetcher_;
    State fetched_{99};
    int corrupt_ = -1;
    int pieces_ = 0;
    int calls_ = 0;
    std::optional<StateVersion> result_;
    std::string problem_;
};

TEST_F(StateTransferTest, the_state_comes_whole_and_both_donors_share_the_work) {
    const State state(1);
    publish(0, 4, state);
    publish(1, 4, state);
    begin();
    ASSERT_TRUE(run_until([&] { return finished(); }));
    EXPECT_EQ(result_, version(4)) << problem_;
    EXPECT_EQ(fetched_, state);
    EXPECT_EQ(pieces_, 5);
    EXPECT_EQ(calls_, 1);
}

TEST_F(StateTransferTest, the_other_donor_takes_over_when_one_dies) {
    const State state(1);
    publish(0, 4, state);
    publish(1, 4, state);
    begin();
    ASSERT_TRUE(run_until([&] { return pieces_ >= 2; }));
    transports_[0].reset();
    ASSERT_TRUE(run_until([&] { return finished(); }));
    EXPECT_EQ(result_, version(4)) << problem_;
    EXPECT_EQ(fetched_, state);
}

TEST_F(StateTransferTest, pieces_that_do_not_match_the_index_are_fetched_elsewhere) {
    const State state(1);
    publish(0, 4, state);
    publish(1, 4, state);
    corrupt_ = 0;
    begin();
    ASSERT_TRUE(run_until([&] { return finished(); }));
    EXPECT_EQ(result_, version(4)) << problem_;
    EXPECT_EQ(fetched_, state);
}

TEST_F(StateTransferTest, a_commit_during_the_fetch_gives_the_newer_state_and_never_a_mixture) {
    const State older(1);
    const State newer(2);
    publish(0, 4, older);
    publish(1, 4, older);
    begin();
    ASSERT_TRUE(run_until([&] { return pieces_ >= 2; }));
    publish(0, 5, newer);
    publish(1, 5, newer);
    ASSERT_TRUE(run_until([&] { return finished(); }));
    ASSERT_TRUE(result_) << problem_;
    EXPECT_EQ(fetched_, *result_ == version(5) ? newer : older);
}

TEST_F(StateTransferTest, donors_with_another_state_end_the_fetch_with_a_reason) {
    const std::vector<float> small(10);
    for (auto& donor : donors_) donor->publish(version(4), {small});
    begin();
    ASSERT_TRUE(run_until([&] { return finished(); }));
    EXPECT_FALSE(result_);
    EXPECT_NE(problem_.find("of this size"), std::string::npos);
}

TEST_F(StateTransferTest, silence_ends_at_the_deadline) {
    begin();  // nobody has published anything
    ASSERT_TRUE(run_until([&] { return finished(); }));
    EXPECT_FALSE(result_);
    EXPECT_NE(problem_.find("in time"), std::string::npos);
    EXPECT_EQ(calls_, 1);
}

TEST(MomentsDonorTest, reads_when_asked_and_says_so_where_it_has_none) {
    const SystemClock clock;
    Frame request;
    request.kind = FrameKind::state_request;
    request.leg = static_cast<std::uint8_t>(StateKind::inner_moments);
    for (const bool has : {true, false}) {
        int reads = 0;
        MomentsDonor donor([&]() -> std::optional<KeptMoments> {
            ++reads;
            if (!has) return {};
            return KeptMoments{version(4), {std::vector<float>(100'000, 2.0F)}};
        });
        EXPECT_TRUE(donor.answer(request, clock.now()).empty()) << "joiners ask again";
        std::vector<Frame> answers;
        while (answers.empty()) {
            donor.step(clock.now());
            answers = donor.answer(request, clock.now());
        }
        EXPECT_EQ(reads, 1);
        EXPECT_EQ(answers.front().kind, FrameKind::state_index);
        EXPECT_EQ(answers.front().leg, request.leg);
        std::int64_t elements = -1;
        std::memcpy(&elements, answers.front().body.bytes().data() + 32, sizeof elements);
        EXPECT_EQ(elements, has ? 100'000 : 0);
        EXPECT_EQ(donor.bytes(), 4 * elements);
        donor.step(clock.after(Milliseconds(60'000)));
        EXPECT_EQ(donor.bytes(), 0) << "nobody asks any more";
    }
}

TEST_F(StateTransferTest, moments_are_not_taken_for_outer_state) {
    PublishedState moments(StateKind::inner_moments);
    const State state(1);
    publish(0, 4, state);
    moments.publish(version(9), {state.theta, state.momentum});
    begin();
    Frame request;
    request.from = SiteId(2);
    for (Frame& frame : moments.answer(request)) {
        frame.from = SiteId(0);
        fetcher_.take(frame);
    }
    ASSERT_TRUE(run_until([&] { return finished(); }));
    EXPECT_EQ(result_, version(4)) << problem_;
}

}  // namespace
}  // namespace atl
