// A whole run in one thread and virtual time: the pure coordinator, N sites' drivers with real packets over a
// simulated network, and workers whose "training" is a pure function of (site, round). Sites can be killed and
// their contributions tampered with.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "comm/site/sim.h"
#include "exchange/driver.h"
#include "rounds/coordinator_state.h"

namespace atl::test {

struct WorldOptions {
    std::uint64_t seed = 1;
    int sites = 2;
    std::string codec = "int8";
    bool zstd = false;
    bool mixed_processors = false;  // sites take turns with the instruction sets there are
    std::int64_t elements = 10'000;
    std::int64_t chunk_elements = 1024;
    std::int64_t rounds = 3;
    std::int64_t fragments = 1;      // of about equal size, one behind the other
    std::int64_t overlap_steps = 0;  // rounds have 4 steps a fragment then
    SimulatedLink link;
    std::vector<double> uplink_bytes_per_second{};  // by site; empty: links are all there is
};

class World {
  public:
    explicit World(WorldOptions options);
    ~World();

    // Runs until `done`, false after `limit` of virtual time.
    bool run_until(const std::function<bool()>& done, Milliseconds limit = Milliseconds(60'000));
    bool run_to_end() {
        return run_until([&] { return all_stopped(); });
    }
    bool all_stopped() const;

    void kill(int site);
    bool is_alive(int site) const { return sites_.at(site)->driver != nullptr; }

    // The Δ of a site in a round, a pure function of both.
    std::vector<float> delta(int site, Round round) const;
    // What tests may change before it is handed in.
    std::function<void(int site, Round round, std::vector<float>& delta)> tamper;
    // What it declares of it; by default the norm that Δ has.
    std::function<void(int site, Round round, ContributionFacts& facts)> declare;
    // Called when a site hands in its Δ.
    std::function<void(int site, Round round)> on_contribute;
    // Sees and may change each frame's place on the wire: see WireHook.
    std::function<void(int site, Frame& frame)> on_send;

    const std::map<Round, std::vector<float>>& means(int site) const { return sites_.at(site)->means; }
    const std::map<Round, Commit>& commits(int site) const { return sites_.at(site)->commits; }
    // What the codec lost of the site's own Δ; only where it must be fed back.
    const std::map<Round, std::vector<float>>& losses(int site) const { return sites_.at(site)->losses; }
    kernels::InstructionSet instruction_set(int site) const;
    // From the Δ of the last site to the commit here.
    std::chrono::nanoseconds duration(int site, Round round) const {
        return sites_.at(site)->committed.at(round) - contributed_.at(round);
    }
    SiteDriver& driver(int site) { return *sites_.at(site)->driver; }
    SiteTransport& transport(int site) { return *sites_.at(site)->transport; }
    // The mean that the commit of `round` must have, by a plain loop over what the codec makes of each Δ.
    std::vector<float> expected_direct_mean(const Commit& commit) const;
    TimePoint now() { return network_.clock().now(); }

  private:
    struct Link;
    struct Site {
        std::unique_ptr<SiteTransport> transport;
        std::unique_ptr<Link> control;
        std::unique_ptr<SiteDriver> driver;
        Incarnation incarnation;
        std::map<Round, std::vector<float>> means;
        std::map<Round, Commit> commits;
        std::map<Round, TimePoint> committed;  // when
        std::optional<RoundPlan> plan;  // of the open round
        std::uint64_t work = 0;
        std::shared_ptr<std::vector<float>> loss;  // shared with the driver, which fills it
        std::map<Round, std::vector<float>> losses;
    };
    void start(int site, Incarnation incarnation);
    void work(int site, const WorkerOrder& order);
    void contribute(int site, const FragmentPlan& fragment);
    std::span<float> part(std::vector<float>& values, FragmentId fragment) const;
    std::int64_t fragment_begin(std::int64_t fragment) const {
        return fragment * options_.elements / options_.fragments;
    }
    void coordinate();

    WorldOptions options_;
    SimulatedNetwork network_;
    CoordinatorState coordinator_;
    std::int64_t announced_version_ = -1;
    std::vector<std::unique_ptr<Site>> sites_;
    std::map<Round, TimePoint> contributed_;
};

}  // namespace atl::test
