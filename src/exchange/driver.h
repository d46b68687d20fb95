// SiteDriver: carries out, with real bytes, what the site state machine of `rounds` decides. It encodes the own
// contribution chunk by chunk, sends and verifies packets, sums chunks in SiteId order, keeps what others may
// still ask for, reports to the coordinator, and turns the rest into orders for the worker.
//
// Every chunk is verified before the state machine hears of it: a site can't hold, and so can't commit, what it
// couldn't decode.
//
// Not thread-safe: one thread calls step() again and again (site_exchange.h has one). Nothing here blocks. Errors:
// what peers do wrong is a complaint to the coordinator or a line in the log; CheckError for our own mistakes.
// Memory: one fragment's mean in fp32; encoded, four copies of it and what each other fragment's last mean was made of; at
// most 64 MiB of packets that came too early. The transport holds its peers' windows on top (comm/site/transport.h).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "comm/site/transport.h"
#include "core/log.h"
#include "exchange/fragment_mean.h"
#include "exchange/moments_donor.h"
#include "exchange/send_queue.h"
#include "exchange/state_transfer.h"
#include "exchange/traffic.h"
#include "exchange/wire.h"
#include "kernels/outer_step.h"
#include "rounds/control_link.h"
#include "rounds/site_state.h"

namespace atl {

struct ExchangeOptions {
    SiteOptions site;
    Milliseconds heartbeat{250};
    bool zstd = true;
    LoadMoments load_moments;  // for joiners; none: there are no inner moments
    kernels::InstructionSet instruction_set = kernels::best_instruction_set();  // changes no bit
};

// The own Δ of one fragment. `work` is the number of the StartRound order it was made for.
struct Contribution {
    Round round;
    FragmentId fragment;
    std::uint64_t work = 0;
    std::shared_ptr<const std::vector<float>> delta;  // shared: fp32 packets are views of it for two rounds
    ContributionFacts facts;
    // If given, it is `delta`'s buffer, for a codec that needs_error_feedback. Each chunk becomes Δ less what the others
    // decode once it is encoded: all of it before the contribution's round can be committed.
    std::shared_ptr<std::vector<float>> loss;
};

// What the worker must do: LoadState, FetchState, StartRound, ApplyCommit, DropContribution, WriteCheckpoint,
// Evaluate or Stop.
struct WorkerOrder {
    SiteAction action;
    std::string reason;
    std::uint64_t work = 0;         // grows with every StartRound and DropContribution
    std::span<const float> mean{};  // ApplyCommit: of its fragment, until CommitApplied
};

class SiteDriver {
  public:
    SiteDriver(ExchangeOptions options, SiteTransport& transport, ControlLink& control, const Clock& clock,
               Log log);
    ~SiteDriver();

    // One short turn. False if there was nothing to do: wait for the transport's next event and give it to take().
    bool step();
    void take(TransportEvent event);

    // From the worker: StateLoaded, StateFailed, StepDone, CommitApplied, WindowsEvaluated, Evaluated, CheckpointWritten,
    // LeaveRequested.
    void tell(const SiteEvent& event);
    void contribute(Contribution contribution);
    std::optional<WorkerOrder> take_order();

    PublishedState& published_state() { return published_; }
    void fetch_state(FetchRequest request) { fetcher_.begin(std::move(request), clock_.now()); }

    Phase phase() const { return state_.phase(); }
    bool stopped() const { return stopped_; }
    const RoundTraffic& last_traffic() const { return traffic_; }
    std::int64_t stored_bytes() const { return store_.bytes(); }  // encoded
    std::int64_t mean_bytes() const;                              // fp32, of fragments whose mean is coming together

  private:
    struct Tools;                             // encoders and decoders of the codecs in use
    static constexpr SiteId kNothingYet{-2};  // no site's number
    // What became of a packet on its way into the mean.
    struct Taken {
        bool was_summed = false;        // its values are in the mean, and so are known to be finite
        std::optional<SiteId> culprit;  // whose values left the range of fp32
    };
    struct Encoding {
        Contribution contribution;
        std::deque<std::int64_t> chunks;  // still to encode, in this order
    };

    void handle(const SiteEvent& event);
    void follow_plan();
    void execute(const SiteDecision& decision);
    void report();
    void order(const SiteDecision& decision);
    void apply(const SiteDecision& decision, const site_action::ApplyCommit& order);
    void release_mean(FragmentId fragment);

    void take_view(View view);
    void take_frame(Frame frame);
    void take_packet(ArrivedPacket arrived);
    std::optional<Packet> readable(const ArrivedPacket& arrived, const FragmentPlan& plan);
    bool is_good(const PacketKey& key, const Packet& packet);
    double least_norm(const PacketKey& key);
    void say_no_good(const PacketKey& key, const std::string& problem) const;
    void complain_of(SiteId culprit, PacketKey key);
    void put_back(const PacketKey& key, const PacketDigest& digest, std::optional<Packet> before);
    std::string called(SiteId site) const { return state_.view().called(site); }
    bool is_void(const PacketKey& key) const;
    void invalidate(const PacketKey& key);
    void retry_deferred();
    bool encode_next();
    void refuse_own(const Contribution& contribution);

    // The layout and codec of a round's fragment; nothing while its plan is unknown.
    const FragmentPlan* layout(Round round, FragmentId fragment) const;
    std::optional<AttemptPlan> basis(FragmentId fragment) const;
    Tools& tools();
    Taken sum_directly(const FragmentPlan& layout, const AttemptPlan& basis, std::int64_t chunk);
    // Sums the packets of `key` with each contributor as its origin; kNothingYet if one is not here.
    std::optional<SiteId> sum(const std::vector<Contributor>& contributors, PacketKey key, std::span<float> mean,
                              kernels::ReadAgain mean_is_read);
    Taken take_into_mean(const PacketKey& key);
    void reduce(const site_action::ReduceChunk& order);
    void finish_mean(const Commit& commit);

    ExchangeOptions options_;
    SiteTransport& transport_;
    ControlLink& control_;
    const Clock& clock_;
    Log log_;
    SiteState state_;

    std::optional<RoundPlan> plan_;                      // of this site's round, or the nearest that was seen
    std::tuple<Round, Term, std::int64_t> plan_source_;  // the round and view it was taken for
    std::unique_ptr<Tools> tools_;
    PacketStore store_;
    SendQueue sends_;
    std::map<FragmentId, FragmentMean> means_;
    std::vector<float> scratch_;  // a chunk: its mean before it is encoded, or what it was decoded to
    std::deque<Encoding> encodings_;
    std::deque<ArrivedPacket> deferred_;  // of a round whose plan is not here yet
    std::int64_t deferred_bytes_ = 0;
    std::optional<PacketKey> in_hand_;  // in the store while the state machine decides whether it stays
    bool kept_in_hand_ = false;

    std::deque<WorkerOrder> orders_;
    std::uint64_t work_ = 0;
    std::vector<Peer> peers_;
    bool name_is_taken_ = false;
    TimePoint next_tick_{};
    TimePoint next_report_{};
    bool stopped_ = false;

    PublishedState published_;
    MomentsDonor moments_;
    StateFetcher fetcher_;
    TrafficCount counting_;
    RoundTraffic traffic_;
};

}  // namespace atl
