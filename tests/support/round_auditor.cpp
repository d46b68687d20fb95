#include "support/round_auditor.h"

#include <fmt/format.h>

#include <span>
#include <string>

namespace atl::testing {
namespace {

template <class... Args>
void demand(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds) throw WorldViolation(fmt::format(format, std::forward<Args>(args)...));
}

Hash128 hash_text(const std::string& text) {
    return xxh3_128(std::as_bytes(std::span(text.data(), text.size())));
}

std::string text_of(const Content& content) {
    std::string text = fmt::format("{}:", content.chunk);
    for (const Part& part : content.parts)
        text += fmt::format("{},{},{};", part.site, part.weight, part.delta);
    return text;
}

}  // namespace

PacketDigest digest_of(const Content& content) {
    return hash_text(text_of(content));
}

void RoundAuditor::on_report(const Report& report) {
    for (const FragmentReport& fragment : report.fragments) {
        if (!fragment.held) continue;
        held_.insert({report.site.id, report.site.incarnation, report.round, fragment.fragment,
                      fragment.attempt, *fragment.held});
    }
}

void RoundAuditor::on_decision(const CoordinatorDecision& decision) {
    if (const auto* truncated = std::get_if<coordinator_action::TruncateRounds>(&decision.action)) {
        // The last round that stays is open again; what stays of its commits is stored next.
        const auto undone = surviving_.lower_bound({truncated->last, FragmentId(0)});
        for (auto entry = undone; entry != surviving_.end(); ++entry) {
            std::erase_if(used_, [&](const auto& use) { return use.second == entry->second.hash; });
        }
        surviving_.erase(undone, surviving_.end());
        consumed_.erase(consumed_.lower_bound(truncated->last), consumed_.end());
    }
    if (const auto* stored = std::get_if<coordinator_action::StoreRound>(&decision.action)) {
        for (const AttemptPlan& attempt : stored->record.attempts) {
            later_attempts_ += attempt.attempt > Attempt(0) && !stored->record.committed();
        }
        for (const Commit& commit : stored->record.commits) on_commit(stored->record, commit);
        check_ledger(stored->record);
    }
}

void RoundAuditor::on_commit(const RoundRecord& record, const Commit& commit) {
    const auto known = surviving_.find({commit.round, commit.fragment});
    if (known != surviving_.end()) {
        demand(known->second == commit, "round {} is committed twice: {} and {}", commit.round,
               known->second.hash.hex(), commit.hash.hex());
        return;
    }
    std::pair expected(Round(0), FragmentId(0));
    if (!surviving_.empty()) {
        const Commit& last = surviving_.rbegin()->second;
        expected = last.ends_round() ? std::pair(last.round.next(), FragmentId(0))
                                     : std::pair(last.round, FragmentId(last.fragment.value() + 1));
    }
    demand(expected == std::pair(commit.round, commit.fragment),
           "fragment {} of round {} is committed out of order", commit.fragment, commit.round);
    // What a resume keeps of a round was held when it was committed, by processes that may be gone.
    const auto ever = committed_.find(commit.hash);
    const bool kept = ever != committed_.end() && ever->second == commit;
    for (const SiteId member : kept ? std::vector<SiteId>{} : commit.members) {
        const Incarnation incarnation = record.plan.find(member)->incarnation;
        demand(held_.contains(
                   {member, incarnation, commit.round, commit.fragment, commit.attempt, commit.hash}),
               "round {} is committed, but site {} never held {}", commit.round, member, commit.hash.hex());
    }
    surviving_[{commit.round, commit.fragment}] = commit;
    committed_[commit.hash] = commit;
    // A site's blocks are used up as soon as a part of what they taught it is in the run. When a commit is stored again,
    // with a round that was opened again, a later plan may have given the site other blocks.
    const auto [taught, is_new] = taught_.try_emplace(commit.hash);
    for (const Contributor& contributor : commit.contributors) {
        if (is_new) taught->second[contributor.site] = record.plan.find(contributor.site)->blocks;
        consumed_[commit.round].emplace(contributor.site, taught->second.at(contributor.site));
    }
}

// Consumed, returned and leased blocks are together every block before the ledger's next one, each once.
void RoundAuditor::check_ledger(const RoundRecord& record) const {
    const Ledger& ledger = record.ledger;
    std::map<std::pair<std::int64_t, std::int64_t>, int> times;
    const auto count = [&](const std::vector<BlockRange>& ranges) {
        for (const BlockRange& range : ranges) {
            for (std::int64_t i = 0; i < range.count; ++i) ++times[{range.epoch, range.first + i}];
        }
    };
    for (const auto& [round, sites] : consumed_) {
        for (const auto& [site, blocks] : sites)
            if (round < record.plan.round) count(blocks);
    }
    count(ledger.returned);
    for (const auto& [site, blocks] : ledger.leases) count(blocks);
    const std::int64_t leased = ledger.next_epoch * ledger.blocks_per_epoch + ledger.next_block;
    demand(std::int64_t(times.size()) == leased, "the ledger of round {} knows {} of {} blocks",
           record.plan.round, times.size(), leased);
    for (const auto& [block, uses] : times) {
        demand(uses == 1, "block {} of epoch {} is there {} times in round {}", block.second, block.first,
               uses, record.plan.round);
    }
}

std::vector<std::uint64_t> RoundAuditor::apply(SiteId site, const Commit& commit,
                                               const std::vector<Content>& means,
                                               const std::vector<std::uint64_t>& before) {
    const auto known = committed_.find(commit.hash);
    demand(known != committed_.end() && known->second == commit,
           "site {} applies round {} as {}, which is not committed", site, commit.round, commit.hash.hex());
    std::vector<std::uint64_t> after = before;
    for (std::size_t chunk = 0; chunk < means.size(); ++chunk) {
        const Content& mean = means[chunk];
        demand(mean.chunk == std::int64_t(chunk), "site {} puts chunk {} in the place of {}", site,
               mean.chunk, chunk);
        demand(mean.parts.size() == commit.contributors.size(),
               "round {} chunk {}: {} parts from {} contributors", commit.round, chunk, mean.parts.size(),
               commit.contributors.size());
        for (std::size_t i = 0; i < mean.parts.size(); ++i) {
            const Part& part = mean.parts[i];
            demand(part.site == commit.contributors[i].site && part.weight == commit.contributors[i].weight,
                   "round {} chunk {}: part {} is of site {} weight {}, not of site {} weight {}",
                   commit.round, chunk, i, part.site, part.weight, commit.contributors[i].site,
                   commit.contributors[i].weight);
            demand(part.delta == means.front().parts[i].delta, "round {}: site {}'s Δ is in the mean in part",
                   commit.round, part.site);
            const Delta& delta = deltas_.at(part.delta);
            demand(delta.round == commit.round && delta.fragment == commit.fragment && delta.base == before,
                   "round {}: the Δ of site {} belongs to round {} or to other weights", commit.round,
                   part.site, delta.round);
            const auto use = used_.emplace(part.delta, commit.hash).first;
            demand(use->second == commit.hash, "a Δ of site {} is in two means", part.site);
        }
        after[chunk] = digest_of(mean).low * 31 + before[chunk];
    }
    const auto equal = weights_.emplace(commit.hash, after).first;
    demand(equal->second == after, "site {} has other weights after round {} than the rest", site,
           commit.round);
    return after;
}

}  // namespace atl::testing
