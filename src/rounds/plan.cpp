#include "rounds/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace atl {
namespace {

constexpr std::int64_t kLeastChunks = 256;
constexpr std::int64_t kFewestElements = 16 << 10;
constexpr std::int64_t kMostElements = 256 << 10;

// Appends fields as little-endian bytes (Atoll runs on little-endian processors only).
class HashInput {
  public:
    template <class T>
    requires std::is_arithmetic_v<T> HashInput& add(T value) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
        return *this;
    }
    template <class Tag, class Integer>
    HashInput& add(StrongId<Tag, Integer> id) {
        return add(id.value());
    }
    HashInput& add(const std::string& text) {
        add(std::int64_t(text.size()));
        const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
        bytes_.insert(bytes_.end(), bytes, bytes + text.size());
        return *this;
    }
    HashInput& add(const Hash128& hash) { return add(hash.high).add(hash.low); }
    Hash128 hash() const { return xxh3_128(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

bool has_site(const std::vector<Contributor>& contributors, SiteId site) {
    return std::any_of(contributors.begin(), contributors.end(),
                       [&](const Contributor& contributor) { return contributor.site == site; });
}

}  // namespace

std::int64_t chunk_elements_for(std::int64_t fragment_elements) {
    const auto power_of_two = std::bit_floor(static_cast<std::uint64_t>(fragment_elements / kLeastChunks));
    return std::clamp(static_cast<std::int64_t>(power_of_two), kFewestElements, kMostElements);
}

std::int64_t FragmentPlan::chunk_size(std::int64_t chunk) const {
    ATOLL_CHECK(chunk >= 0 && chunk < chunks(), "chunk {} of {}", chunk, chunks());
    return std::min(chunk_elements, elements - chunk_begin(chunk));
}

std::int64_t RoundPlan::inner_steps() const {
    std::int64_t steps = 0;
    for (const SitePlan& site : sites) steps = std::max(steps, site.inner_steps);
    return steps;
}

const SitePlan* RoundPlan::find(SiteId site) const {
    const auto found =
        std::find_if(sites.begin(), sites.end(), [&](const SitePlan& plan) { return plan.site == site; });
    return found == sites.end() ? nullptr : &*found;
}

const FragmentPlan& RoundPlan::fragment(FragmentId id) const {
    for (const FragmentPlan& fragment : fragments) {
        if (fragment.id == id) return fragment;
    }
    ATOLL_CHECK(false, "fragment {} is not in the plan of round {}", id, round);
}

Step RoundPlan::apply_step(const FragmentPlan& fragment) const {
    return Step(fragment.start_step.value() + numbers.overlap_steps);
}

Hash128 RoundPlan::hash() const {
    HashInput input;
    input.add(run_id)
        .add(term)
        .add(round)
        .add(first_step)
        .add(state_before)
        .add(first_attempt)
        .add(std::int64_t(sites.size()));
    for (const SitePlan& site : sites) {
        input.add(site.site)
            .add(site.incarnation)
            .add(site.contributes)
            .add(site.inner_steps)
            .add(site.weight);
        input.add(std::int64_t(site.blocks.size()));
        for (const BlockRange& range : site.blocks) input.add(range.epoch).add(range.first).add(range.count);
        input.add(site.send_bytes_per_second);
    }
    input.add(std::int64_t(fragments.size()));
    for (const FragmentPlan& part : fragments) {
        input.add(part.id).add(part.elements).add(part.chunk_elements).add(part.start_step);
    }
    input.add(numbers.method).add(numbers.codec).add(numbers.outer_lr).add(numbers.outer_momentum);
    input.add(numbers.second_decay).add(numbers.epsilon);
    input.add(numbers.nesterov).add(numbers.alpha).add(numbers.overlap_steps);
    input.add(std::int64_t(checkpoint_steps.size()));
    for (const Step step : checkpoint_steps) input.add(step);
    input.add(evaluate).add(stop_step.has_value()).add(stop_step.value_or(Step(0))).add(reason);
    return input.hash();
}

bool AttemptPlan::contributes(SiteId site) const {
    return has_site(contributors, site);
}

bool AttemptPlan::is_member(SiteId site) const {
    return std::find(members.begin(), members.end(), site) != members.end();
}

SiteId AttemptPlan::owner_of(std::int64_t chunk) const {
    for (const OwnerShare& share : owners) {
        if (chunk >= share.first_chunk && chunk < share.first_chunk + share.chunks) return share.site;
    }
    ATOLL_CHECK(false, "chunk {} of fragment {} has no owner", chunk, fragment);
}

bool Commit::contributes(SiteId site) const {
    return has_site(contributors, site);
}

AttemptPlan attempt_of(const Commit& commit) {
    return AttemptPlan{.round = commit.round,
                       .fragment = commit.fragment,
                       .attempt = commit.attempt,
                       .resend_since = commit.resend_since,
                       .direct = commit.direct,
                       .contributors = commit.contributors,
                       .owners = commit.owners,
                       .members = commit.members,
                       .reason = "committed"};
}

Hash128 state_after(const Hash128& state_before, std::span<const Commit> applied) {
    if (applied.empty()) return state_before;
    if (applied.size() == 1) return applied.front().hash;
    HashInput input;
    for (const Commit& commit : applied) input.add(commit.hash);
    return input.hash();
}

std::vector<OwnerShare> share_chunks(std::int64_t chunks, const std::vector<SiteId>& sites,
                                     const std::vector<double>& shares) {
    ATOLL_CHECK_EQ(sites.size(), shares.size());
    double total = 0;
    for (const double share : shares) total += share;
    ATOLL_CHECK(total > 0, "shares of {} owners sum to {}", sites.size(), total);
    std::vector<OwnerShare> owners;
    std::int64_t begin = 0;
    double until = 0;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        until += shares[i];
        const bool last = i + 1 == sites.size();
        const std::int64_t end = last ? chunks : std::llround(double(chunks) * (until / total));
        if (end > begin) owners.push_back({sites[i], begin, end - begin});
        begin = end;
    }
    return owners;
}

Hash128 commit_hash(const Hash128& state_before, const AttemptPlan& attempt,
                    const std::vector<PacketDigest>& digests) {
    HashInput input;
    input.add(state_before).add(std::int64_t(attempt.contributors.size()));
    for (const Contributor& contributor : attempt.contributors) {
        input.add(contributor.site).add(contributor.weight);
    }
    input.add(attempt.fragment).add(std::int64_t(digests.size()));
    for (const PacketDigest& digest : digests) input.add(digest);
    return input.hash();
}

}  // namespace atl
