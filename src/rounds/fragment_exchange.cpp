#include "rounds/fragment_exchange.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace atl {

void FragmentExchange::encoded(std::int64_t chunk, const PacketDigest& digest) {
    const bool news = !valid(self_, chunk);
    contributions_[self_][chunk] = {attempt_ ? attempt_->attempt : Attempt(0), digest, 0};
    if (news && attempt_ && attempt_->direct && attempt_->contributes(self_) && chunk < chunks_) --remaining_;
}

void FragmentExchange::drop_own() {
    facts_.reset();
    contributions_.erase(self_);
    sent_.clear();
    count_remaining();
}

bool FragmentExchange::own_complete() const {
    const auto own = contributions_.find(self_);
    return facts_ && own != contributions_.end() && std::int64_t(own->second.size()) == chunks_;
}

bool FragmentExchange::valid(SiteId origin, std::int64_t chunk) const {
    const auto of_origin = contributions_.find(origin);
    if (of_origin == contributions_.end()) return false;
    const auto packet = of_origin->second.find(chunk);
    if (packet == of_origin->second.end()) return false;
    return origin == self_ || !attempt_ || packet->second.attempt >= attempt_->resend_since;
}

bool FragmentExchange::owns(std::int64_t chunk) const {
    return attempt_ && !attempt_->direct && attempt_->owner_of(chunk) == self_;
}

bool FragmentExchange::needs_contribution(std::int64_t chunk) const {
    return attempt_ && (attempt_->direct || owns(chunk));
}

void FragmentExchange::adopt(const AttemptPlan& attempt, std::int64_t chunks) {
    const Attempt void_before = attempt_ ? attempt_->resend_since : Attempt(0);
    attempt_ = attempt;
    chunks_ = chunks;
    const bool anew = attempt.resend_since > void_before;
    if (anew) sent_.clear();
    for (auto& [origin, packets] : contributions_) {
        const bool own = origin == self_;
        std::erase_if(packets, [&](const auto& packet) {
            return packet.first >= chunks || (!own && packet.second.attempt < attempt.resend_since);
        });
    }
    std::erase_if(means_, [&](const auto& entry) { return entry.first < attempt.attempt; });
    for (auto& [number, means] : means_) {
        std::erase_if(means, [&](const auto& mean) { return mean.first >= chunks; });
    }
    reducing_.clear();
    complaints.clear();
    count_remaining();
}

void FragmentExchange::count_remaining() {
    remaining_ = 0;
    first_missing_.clear();
    least_norms_.clear();
    if (!attempt_) return;
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
        if (!attempt_->direct) {
            const auto means = means_.find(attempt_->attempt);
            remaining_ += means == means_.end() || !means->second.contains(chunk);
            continue;
        }
        for (const Contributor& contributor : attempt_->contributors)
            remaining_ += !valid(contributor.site, chunk);
    }
}

bool FragmentExchange::arrived(const PacketKey& key, const PacketDigest& digest, double least_norm) {
    if (attempt_ && key.chunk >= chunks_) return false;
    if (key.leg == Leg::mean) {
        if (attempt_) {
            if (attempt_->direct && key.attempt == attempt_->attempt) return false;
            if (key.attempt < attempt_->attempt) return false;
            if (key.attempt == attempt_->attempt && attempt_->owner_of(key.chunk) != key.origin) return false;
        }
        const bool news = means_[key.attempt].emplace(key.chunk, digest).second;
        if (news && attempt_ && key.attempt == attempt_->attempt) --remaining_;
        return news;
    }
    if (key.origin == self_ && facts_) return false;  // only if it was dropped here
    if (attempt_) {
        if (key.attempt < attempt_->resend_since || !attempt_->contributes(key.origin)) return false;
        if (key.attempt <= attempt_->attempt && !needs_contribution(key.chunk)) return false;
    }
    const bool was_valid = valid(key.origin, key.chunk);
    auto& packets = contributions_[key.origin];
    const auto [packet, inserted] = packets.emplace(key.chunk, Arrived{key.attempt, digest, least_norm});
    if (!inserted) {
        if (key.attempt <= packet->second.attempt) return false;
        const bool same = packet->second.digest == digest;
        if (!same && was_valid && attempt_ && key.attempt <= attempt_->attempt) return false;
        least_norms_.erase(key.origin);
        packet->second = {key.attempt, digest,
                          least_norm};  // kept anew even if the bytes are the same: under the newer attempt
    }
    const bool counts = attempt_ && attempt_->direct && attempt_->contributes(key.origin);
    if (counts && !was_valid) --remaining_;
    return true;
}

void FragmentExchange::reduced(std::int64_t chunk, const PacketDigest& digest) {
    ATOLL_CHECK(owns(chunk), "chunk {} is not this site's to reduce", chunk);
    if (means_[attempt_->attempt].emplace(chunk, digest).second) --remaining_;
}

void FragmentExchange::forget_received() {
    std::erase_if(contributions_, [&](const auto& entry) { return entry.first != self_; });
    means_.clear();
    reducing_.clear();
    count_remaining();
}

std::vector<std::int64_t> FragmentExchange::encoded_chunks() const {
    std::vector<std::int64_t> chunks;
    const auto own = contributions_.find(self_);
    if (own == contributions_.end()) return chunks;
    for (const auto& [chunk, packet] : own->second) chunks.push_back(chunk);
    return chunks;
}

std::vector<SiteId> FragmentExchange::take_receivers(std::int64_t chunk) {
    std::vector<SiteId> receivers;
    if (!attempt_ || !attempt_->contributes(self_)) return receivers;
    const auto consider = [&](SiteId site) {
        if (site != self_ && sent_[chunk].insert(site).second) receivers.push_back(site);
    };
    if (attempt_->direct) {
        for (const SiteId member : attempt_->members) consider(member);
    } else {
        consider(attempt_->owner_of(chunk));
    }
    return receivers;
}

bool FragmentExchange::take_reducible(std::int64_t chunk) {
    if (!owns(chunk) || reducing_.contains(chunk)) return false;
    const bool ready =
        std::all_of(attempt_->contributors.begin(), attempt_->contributors.end(),
                    [&](const Contributor& contributor) { return valid(contributor.site, chunk); });
    if (ready) reducing_.insert(chunk);
    return ready;
}

Hash128 FragmentExchange::hash(const Hash128& state_before) const {
    ATOLL_CHECK(holds_all(), "{} packets are missing", remaining_);
    std::vector<PacketDigest> digests;
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
        if (attempt_->direct) {
            for (const Contributor& contributor : attempt_->contributors) {
                digests.push_back(contributions_.at(contributor.site).at(chunk).digest);
            }
        } else {
            digests.push_back(means_.at(attempt_->attempt).at(chunk));
        }
    }
    return commit_hash(state_before, *attempt_, digests);
}

std::vector<SiteId> FragmentExchange::missing_contributions() const {
    std::vector<SiteId> missing;
    if (!attempt_) return missing;
    for (const Contributor& contributor : attempt_->contributors) {
        std::int64_t& chunk = first_missing_[contributor.site];
        while (chunk < chunks_ && (!needs_contribution(chunk) || valid(contributor.site, chunk))) ++chunk;
        if (chunk < chunks_) missing.push_back(contributor.site);
    }
    return missing;
}

std::vector<LeastNorm> FragmentExchange::least_norms() const {
    std::vector<LeastNorm> norms;
    const std::vector<SiteId> missing = missing_contributions();
    if (!attempt_) return norms;
    for (const Contributor& contributor : attempt_->contributors) {
        const SiteId site = contributor.site;
        const auto packets = contributions_.find(site);
        const bool is_here = std::find(missing.begin(), missing.end(), site) == missing.end();
        if (site == self_ || !is_here || packets == contributions_.end()) continue;
        const auto [known, is_new] = least_norms_.try_emplace(site, 0);
        if (is_new) {
            double squares = 0;
            for (const auto& [chunk, packet] : packets->second)
                if (needs_contribution(chunk)) squares += packet.least_norm * packet.least_norm;
            known->second = std::sqrt(squares);
        }
        if (known->second > 0) norms.push_back({site, known->second});
    }
    return norms;
}

std::vector<SiteId> FragmentExchange::missing_means() const {
    std::vector<SiteId> missing;
    if (!attempt_ || attempt_->direct) return missing;
    const auto means = means_.find(attempt_->attempt);
    for (const OwnerShare& share : attempt_->owners) {
        bool lacks = false;
        for (std::int64_t i = 0; i < share.chunks && !lacks; ++i) {
            lacks = means == means_.end() || !means->second.contains(share.first_chunk + i);
        }
        if (lacks) missing.push_back(share.site);
    }
    return missing;
}

std::vector<PacketKey> FragmentExchange::missing_from(SiteId origin) const {
    std::vector<PacketKey> keys;
    if (!attempt_) return keys;
    PacketKey key{Leg::contribution, attempt_->round, attempt_->fragment, attempt_->attempt, origin, 0};
    const auto means = means_.find(attempt_->attempt);
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
        key.chunk = chunk;
        key.leg = Leg::contribution;
        if ((origin != self_ || !facts_) && attempt_->contributes(origin) && needs_contribution(chunk) &&
            !valid(origin, chunk)) {
            keys.push_back(key);
        }
        const bool held = means != means_.end() && means->second.contains(chunk);
        if (attempt_->direct || held || attempt_->owner_of(chunk) != origin) continue;
        key.leg = Leg::mean;
        keys.push_back(key);
    }
    return keys;
}

std::optional<PacketKey> FragmentExchange::find(const PacketKey& wanted) const {
    if (!attempt_) return std::nullopt;
    PacketKey key = wanted;
    if (wanted.leg == Leg::mean) {
        const auto means = means_.find(wanted.attempt);
        const bool held = means != means_.end() && means->second.contains(wanted.chunk);
        return held && wanted.attempt == attempt_->attempt ? std::optional(key) : std::nullopt;
    }
    if (!valid(wanted.origin, wanted.chunk)) return std::nullopt;
    // Labelled with the attempt it is good for here: if the one who asks is further, it must not take void packets.
    key.attempt = wanted.origin == self_ ? attempt_->attempt
                                         : contributions_.at(wanted.origin).at(wanted.chunk).attempt;
    return key;
}

}  // namespace atl
