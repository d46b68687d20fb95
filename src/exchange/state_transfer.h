// State for a joiner: published by whoever holds it, fetched in pieces from several donors at once, each piece checked
// against the hash that the index gave. The outer state is equal on all donors; inner moments are one donor's own.
// θ_outer changes only at commits; a donor that has moved on says so with its new index, and the fetch begins again with
// the newest state.
//
// State = parts one after the other, as fp32. Errors: none; a fetch ends done or with a reason, within its
// deadline. Cost: one XXH3 pass per published state that is asked for; 256 KiB pieces, four under way per donor.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "comm/site/transport.h"
#include "core/hash.h"

namespace atl {

enum class StateKind : std::uint8_t { outer = 0, inner_moments = 1 };  // on the wire

struct StateVersion {
    Round round;  // the next to apply
    Step step;    // inner moments: steps that the optimizer has done
    Hash128 state_hash;
    std::int64_t fragments_applied = 0;  // of that round
    auto operator<=>(const StateVersion&) const = default;
};

// What a site gives away. Threads: publish and withdraw from the worker's, the rest from the exchange's.
class PublishedState {
  public:
    explicit PublishedState(StateKind kind = StateKind::outer) : kind_(kind) {}

    // The spans stay valid and unchanged until withdraw() has returned.
    void publish(const StateVersion& version, std::vector<std::span<const float>> parts);
    void withdraw();

    // The answers to a frame of kind state_request; none while nothing is published.
    std::vector<Frame> answer(const Frame& request);

  private:
    Frame index_frame(SiteId to);
    std::optional<Frame> piece_frame(SiteId to, std::int64_t piece);

    const StateKind kind_;
    std::mutex mutex_;  // guards everything
    bool is_published_ = false;
    StateVersion version_;
    std::vector<std::span<const float>> parts_;
    std::vector<std::uint64_t> hashes_;  // of the pieces; empty until somebody asks
};

struct FetchRequest {
    std::vector<SiteId> donors;
    std::vector<std::span<float>> parts;  // as published; stay valid until the fetch has ended
    Deadline deadline;
    std::function<void(std::optional<StateVersion>, const std::string& problem)> done;  // called once
    StateKind kind = StateKind::outer;
};

class StateFetcher {
  public:
    void begin(FetchRequest request, TimePoint now);
    void take(const Frame& frame);                       // state_index and state_piece
    void step(SiteTransport& transport, TimePoint now);  // sends what is due, ends at the deadline

  private:
    struct Index {
        StateVersion version;
        std::vector<std::uint64_t> hashes;
        bool operator==(const Index&) const = default;
    };
    struct Donor {
        std::optional<Index> index;
        std::map<std::int64_t, TimePoint> asked;  // pieces under way
        TimePoint next_index_request{};
    };

    void take_index(const Frame& frame);
    void take_piece(const Frame& frame);
    void choose_state();
    void ask(SiteTransport& transport, SiteId site, Donor& donor, TimePoint now);
    void finish(std::optional<StateVersion> version, const std::string& problem);

    std::optional<FetchRequest> request_;
    std::map<SiteId, Donor> donors_;
    std::optional<Index> chosen_;
    std::set<std::int64_t> missing_;  // pieces of chosen_
    std::set<std::int64_t> unasked_;
};

}  // namespace atl
