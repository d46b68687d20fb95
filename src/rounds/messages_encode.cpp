#include "rounds/messages.h"

#include <nlohmann/json.hpp>

namespace atl {
namespace {

using Json = nlohmann::json;

Json write(const Hash128& hash) {
    return Json::array({hash.high, hash.low});
}
template <class Tag, class Integer>
Json write(StrongId<Tag, Integer> id) {
    return id.value();
}
template <class T>
Json write_list(const std::vector<T>& values);

Json write(const BlockRange& range) {
    return {{"epoch", range.epoch}, {"first", range.first}, {"count", range.count}};
}
Json write(const SiteInfo& site) {
    return {{"id", write(site.id)},
            {"name", site.name},
            {"incarnation", site.incarnation.value()},
            {"address", site.address}};
}
Json write(const CheckpointRef& checkpoint) {
    return {{"step", write(checkpoint.step)},
            {"round", write(checkpoint.round)},
            {"state_hash", write(checkpoint.state_hash)},
            {"fragments_applied", checkpoint.fragments_applied}};
}
Json write(const Complaint& complaint) {
    return {{"accused", write(complaint.accused)}, {"kind", std::uint8_t(complaint.kind)}};
}
Json write(const LeastNorm& least) {
    return {{"site", write(least.site)}, {"norm", least.norm}};
}
Json write(const ContributionFacts& facts) {
    return {{"finite", facts.finite}, {"tensor_norms", facts.tensor_norms}};
}
Json write(const KeptFragment& kept) {
    return {{"round", write(kept.round)}, {"fragment", write(kept.fragment)}};
}

Json write(const FragmentReport& fragment) {
    return {{"fragment", write(fragment.fragment)},
            {"attempt", write(fragment.attempt)},
            {"contribution", fragment.contribution ? write(*fragment.contribution) : Json()},
            {"missing_contributions", write_list(fragment.missing_contributions)},
            {"missing_means", write_list(fragment.missing_means)},
            {"complaints", write_list(fragment.complaints)},
            {"least_norms", write_list(fragment.least_norms)},
            {"held", fragment.held ? write(*fragment.held) : Json()}};
}
Json write(const Hello& hello) {
    return {{"settings", hello.settings},
            {"blocks_per_epoch", hello.blocks_per_epoch},
            {"fragment_elements", hello.fragment_elements},
            {"checkpoints", write_list(hello.checkpoints)}};
}
Json write(const SitePlan& site) {
    return {{"site", write(site.site)},
            {"incarnation", site.incarnation.value()},
            {"contributes", site.contributes},
            {"inner_steps", site.inner_steps},
            {"weight", site.weight},
            {"blocks", write_list(site.blocks)},
            {"send_bytes_per_second", site.send_bytes_per_second}};
}
Json write(const FragmentPlan& fragment) {
    return {{"id", write(fragment.id)},
            {"elements", fragment.elements},
            {"chunk_elements", fragment.chunk_elements},
            {"start_step", write(fragment.start_step)}};
}
Json write(const MethodNumbers& numbers) {
    return {{"method", numbers.method},
            {"codec", numbers.codec},
            {"outer_lr", numbers.outer_lr},
            {"outer_momentum", numbers.outer_momentum},
            {"nesterov", numbers.nesterov},
            {"second_decay", numbers.second_decay},
            {"epsilon", numbers.epsilon},
            {"alpha", numbers.alpha},
            {"overlap_steps", numbers.overlap_steps}};
}
Json write(const RoundPlan& plan) {
    return {{"run_id", plan.run_id},
            {"term", write(plan.term)},
            {"round", write(plan.round)},
            {"first_step", write(plan.first_step)},
            {"state_before", write(plan.state_before)},
            {"first_attempt", write(plan.first_attempt)},
            {"sites", write_list(plan.sites)},
            {"fragments", write_list(plan.fragments)},
            {"numbers", write(plan.numbers)},
            {"checkpoint_steps", write_list(plan.checkpoint_steps)},
            {"evaluate", plan.evaluate},
            {"stop_step", plan.stop_step ? write(*plan.stop_step) : Json()},
            {"reason", plan.reason}};
}
Json write(const Contributor& contributor) {
    return {{"site", write(contributor.site)}, {"weight", contributor.weight}};
}
Json write(const OwnerShare& share) {
    return {{"site", write(share.site)}, {"first_chunk", share.first_chunk}, {"chunks", share.chunks}};
}
Json write(const AttemptPlan& attempt) {
    return {{"round", write(attempt.round)},
            {"fragment", write(attempt.fragment)},
            {"attempt", write(attempt.attempt)},
            {"resend_since", write(attempt.resend_since)},
            {"direct", attempt.direct},
            {"contributors", write_list(attempt.contributors)},
            {"owners", write_list(attempt.owners)},
            {"members", write_list(attempt.members)},
            {"reason", attempt.reason}};
}
Json write(const Commit& commit) {
    return {{"round", write(commit.round)},
            {"fragment", write(commit.fragment)},
            {"attempt", write(commit.attempt)},
            {"resend_since", write(commit.resend_since)},
            {"direct", commit.direct},
            {"contributors", write_list(commit.contributors)},
            {"owners", write_list(commit.owners)},
            {"members", write_list(commit.members)},
            {"state_before", write(commit.state_before)},
            {"chunks", commit.chunks},
            {"hash", write(commit.hash)},
            {"apply_step", write(commit.apply_step)},
            {"last_step", write(commit.last_step)},
            {"fragments", commit.fragments},
            {"numbers", write(commit.numbers)}};
}
Json write(const StartFrom& start) {
    return {{"kind", std::uint8_t(start.kind)},
            {"step", write(start.step)},
            {"round", write(start.round)},
            {"state_hash", write(start.state_hash)},
            {"fragments_applied", start.fragments_applied},
            {"reason", start.reason}};
}
Json write(const Ending& ending) {
    return {{"exit_code", ending.exit_code}, {"checkpoint", ending.checkpoint}, {"reason", ending.reason}};
}
Json write(const SiteView& site) {
    return {{"info", write(site.info)},
            {"standing", std::uint8_t(site.standing)},
            {"phase", std::uint8_t(site.phase)},
            {"round", write(site.round)},
            {"fragments_started", site.fragments_started},
            {"blocked", site.blocked},
            {"reason", site.reason}};
}
Json write(const Ledger& ledger) {
    Json leases = Json::array();
    for (const auto& [site, blocks] : ledger.leases) {
        leases.push_back({{"site", write(site)}, {"blocks", write_list(blocks)}});
    }
    return {{"blocks_per_epoch", ledger.blocks_per_epoch},
            {"next_epoch", ledger.next_epoch},
            {"next_block", ledger.next_block},
            {"returned", write_list(ledger.returned)},
            {"leases", leases}};
}

Json write(const PeerTraffic& peer) {
    return {{"peer", write(peer.peer)},
            {"payload_bytes_sent", peer.payload_bytes_sent},
            {"payload_bytes_received", peer.payload_bytes_received},
            {"wire_bytes_sent", peer.wire_bytes_sent},
            {"wire_bytes_received", peer.wire_bytes_received},
            {"round_trip_seconds", peer.round_trip_seconds}};
}
Json write(const Evaluation& evaluation) {
    return {
        {"round", write(evaluation.round)}, {"loss_sum", evaluation.loss_sum}, {"tokens", evaluation.tokens}};
}

Json write(const RoundCost& cost) {
    return {{"round", write(cost.round)},
            {"inner_steps", cost.inner_steps},
            {"step_seconds", cost.step_seconds},
            {"round_seconds", cost.round_seconds},
            {"exchange_seconds", cost.exchange_seconds},
            {"raw_bytes_sent", cost.raw_bytes_sent},
            {"peers", write_list(cost.peers)}};
}

template <class T>
Json write_list(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(write(value));
    return list;
}

nlohmann::json message_json(const Report& report) {
    return {{"run_id", report.run_id},
            {"site", write(report.site)},
            {"term", write(report.term)},
            {"version", report.version},
            {"sequence", report.sequence},
            {"phase", std::uint8_t(report.phase)},
            {"round", write(report.round)},
            {"steps_done", write(report.steps_done)},
            {"fragments_applied", report.fragments_applied},
            {"state_hash", write(report.state_hash)},
            {"progress", report.progress},
            {"leaving", report.leaving},
            {"send_bytes_per_second", report.send_bytes_per_second},
            {"fragments", write_list(report.fragments)},
            {"kept", write_list(report.kept)},
            {"last_cost", report.last_cost ? write(*report.last_cost) : Json()},
            {"evaluation", report.evaluation ? write(*report.evaluation) : Json()},
            {"hello", report.hello ? write(*report.hello) : Json()}};
}

nlohmann::json message_json(const View& view) {
    return {{"run_id", view.run_id},
            {"term", write(view.term)},
            {"version", view.version},
            {"sites", write_list(view.sites)},
            {"round", write(view.round)},
            {"state_before", view.state_before ? write(*view.state_before) : Json()},
            {"start", view.start ? write(*view.start) : Json()},
            {"plan", view.plan ? write(*view.plan) : Json()},
            {"attempts", write_list(view.attempts)},
            {"open_commits", write_list(view.open_commits)},
            {"commits", write_list(view.commits)},
            {"evaluation", view.evaluation ? write(*view.evaluation) : Json()},
            {"ending", view.ending ? write(*view.ending) : Json()},
            {"hello_known", view.hello_known},
            {"refusal", view.refusal}};
}

nlohmann::json message_json(const RoundRecord& record) {
    return {{"plan", write(record.plan)},
            {"ledger", write(record.ledger)},
            {"attempts", write_list(record.attempts)},
            {"resent", write_list(record.resent)},
            {"commits", write_list(record.commits)}};
}

std::vector<std::byte> pack(const nlohmann::json& message) {
    std::vector<std::uint8_t> packed;
    nlohmann::json::to_msgpack(message, packed);
    const auto* bytes = reinterpret_cast<const std::byte*>(packed.data());
    return {bytes, bytes + packed.size()};
}

nlohmann::json envelope(const char* kind, nlohmann::json body) {
    return {{"kind", kind}, {"version", kControlVersion}, {"body", std::move(body)}};
}

}  // namespace

std::vector<std::byte> encode(const Report& report) {
    return pack(envelope("report", message_json(report)));
}

std::vector<std::byte> encode(const View& view) {
    return pack(envelope("view", message_json(view)));
}

std::vector<std::byte> encode(const RoundRecord& record) {
    return pack(envelope("round", message_json(record)));
}

std::vector<std::byte> encode(const RoundPlan& plan) {
    return pack(envelope("plan", write(plan)));
}

std::vector<std::byte> encode(const RoundCost& cost) {
    return pack(envelope("cost", write(cost)));
}

}  // namespace atl
