// One site of a simulated run: a process around SiteState that trains, encodes, reduces, applies and writes
// checkpoints in virtual time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/random.h"
#include "rounds/site_state.h"
#include "support/round_auditor.h"

namespace atl::testing {

// Random numbers in the order they are asked for.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : stream_(seed, "rounds") {}
    double uniform() { return stream_.uniform(next_++); }
    bool chance(double probability) { return uniform() < probability; }
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + std::int64_t(stream_.below(next_++, std::uint64_t(high - low + 1)));
    }
    std::uint64_t bits() { return stream_.bits(next_++); }

  private:
    RandomStream stream_;
    std::uint64_t next_ = 0;
};

struct SitePacket {
    PacketKey key;
    Content content;
};

// What a site needs of its world.
struct SiteWorld {
    Dice* dice = nullptr;
    RoundAuditor* auditor = nullptr;
    std::function<TimePoint()> now;
    std::function<void(Milliseconds, std::function<void()>)> later;
    std::function<void(const Report&)> report;
    std::function<void(SiteId, const SitePacket&)> send;
    std::function<void(SiteId, const std::vector<PacketKey>&)> request;
    std::function<const class SimulatedSite*(SiteId)> donor;  // null: it is down
    std::function<void(SiteId, const SiteDecision&)> print;
};

class SimulatedSite {
  public:
    SimulatedSite(SiteInfo info, Hello hello, const WorldOptions& options, SiteWorld world);

    void start();  // a new process; what is on its disk stays
    void crash();
    bool up() const { return state_.has_value(); }
    bool finished() const { return exit_code_ == 0; }
    void forget_exit() { exit_code_.reset(); }
    Incarnation incarnation() const { return info_.incarnation; }
    std::string describe() const;

    void receive(const View& view);
    void receive(SiteId sender, const SitePacket& packet, Incarnation sender_incarnation);
    void asked(SiteId requester, const std::vector<PacketKey>& keys);
    void tick();
    void heartbeat();

  private:
    struct Work {  // local steps under a plan
        RoundPlan plan;
        Step steps;
        std::optional<Delta> pending;  // of the fragment whose turn it is, once it is handed over
    };
    struct Checkpoint {
        CheckpointRef reference;
        std::vector<std::vector<std::uint64_t>> weights;
        std::optional<Work> work;
    };
    // Attempt 0 for contributions.
    using StoreKey = std::tuple<Leg, Round, FragmentId, Attempt, SiteId, std::int64_t>;

    void feed(const SiteEvent& event);
    void later(Milliseconds delay, std::function<void()> what);  // unless the process is gone by then
    void act(const SiteAction& action);
    void load(const StartFrom& from);
    void fetch(const std::vector<SiteId>& donors);
    void start_round(const site_action::StartRound& start);
    void train(std::uint64_t work_number);
    bool work_goes_on() const;
    void contribute(const FragmentPlan& fragment);
    void apply(const Commit& commit, const Hash128& state_hash);
    void discard(const site_action::DiscardPackets& packets);
    void reuse_means(const site_action::DiscardPackets& packets);
    void reduce(const site_action::ReduceChunk& chunk);
    void apply(const site_action::ApplyCommit& commit);
    void write_checkpoint(const CheckpointRef& reference);
    double loss() const { return double(weights_hash_.low % 100'003); }  // of the state: another state, another loss
    void apply_without_commit();
    std::vector<Content> means_of(const Commit& commit) const;
    const Content& stored(const StoreKey& key) const;
    static StoreKey store_key(const PacketKey& key);

    SiteInfo info_;
    Hello hello_;
    WorldOptions options_;
    SiteWorld world_;
    std::vector<Checkpoint> disk_;
    std::optional<int> exit_code_;

    std::optional<SiteState> state_;  // of the process, while it runs
    std::uint64_t process_ = 0;
    std::uint64_t work_number_ = 0;
    std::vector<std::vector<std::uint64_t>> weights_;  // of each fragment, by chunk
    Round weights_round_;
    std::int64_t fragments_applied_ = 0;  // of that round
    Hash128 weights_hash_;
    std::optional<Work> work_;
    std::map<Round, double> evaluated_;  // its own loss
    bool handed_over_ = false;  // the Δ of the fragment whose turn it is, by this process under this work
    std::map<StoreKey, std::pair<Content, Attempt>> store_;
    std::optional<SitePacket> arriving_;
};

}  // namespace atl::testing
