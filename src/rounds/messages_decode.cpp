#include <algorithm>
#include <nlohmann/json.hpp>

#include "rounds/message_fields.h"
#include "rounds/messages.h"

namespace atl {
namespace {

using Json = nlohmann::json;
using Fields = MessageFields<Json>;

template <class Read>
auto read_list(Fields& fields, const char* key, Read read) {
    std::vector<decltype(read(fields.item(Json::object(), key)))> values;
    for (const Json& value : fields.list(key)) values.push_back(read(fields.item(value, key)));
    return values;
}

template <class Read>
auto read_optional(Fields& fields, const char* key, Read read) {
    const Json* value = fields.optional(key);
    return value == nullptr ? std::nullopt : std::optional(read(fields.item(*value, key)));
}

template <class T>
bool ascending_sites(const std::vector<T>& values) {
    return std::is_sorted(values.begin(), values.end(),
                          [](const T& left, const T& right) { return left.site <= right.site; });
}

BlockRange read_block(Fields fields) {
    BlockRange range{fields.count("epoch"), fields.count("first"), fields.integer("count", 1, Fields::kMost)};
    fields.done();
    return range;
}

SiteInfo read_site(Fields fields) {
    SiteInfo site;
    site.id = fields.site("id");
    site.name = fields.text("name");
    site.incarnation = fields.incarnation("incarnation");
    site.address = fields.text("address");
    fields.demand(!site.name.empty(), "name", "is empty");
    fields.done();
    return site;
}

CheckpointRef read_checkpoint(Fields fields) {
    CheckpointRef checkpoint{fields.id<Step>("step"), fields.id<Round>("round"), fields.hash("state_hash"),
                             fields.count("fragments_applied")};
    fields.done();
    return checkpoint;
}

Complaint read_complaint(Fields fields) {
    Complaint complaint{fields.site("accused"), fields.enumeration("kind", ComplaintKind::non_finite)};
    fields.done();
    return complaint;
}

LeastNorm read_least_norm(Fields fields) {
    LeastNorm least{fields.site("site"), fields.number("norm")};
    fields.done();
    return least;
}

ContributionFacts read_facts(Fields fields) {
    ContributionFacts facts;
    facts.finite = fields.boolean("finite");
    for (const Json& norm : fields.list("tensor_norms")) {
        fields.demand(norm.is_number(), "tensor_norms", "holds something else than numbers");
        const double value = norm.get<double>();
        fields.demand(!facts.finite || (std::isfinite(value) && value >= 0), "tensor_norms",
                      "of a finite Δ are not norms");
        facts.tensor_norms.push_back(value);
    }
    fields.done();
    return facts;
}

FragmentReport read_fragment_report(Fields fields) {
    FragmentReport report;
    report.fragment = fields.id<FragmentId>("fragment");
    report.attempt = fields.id<Attempt>("attempt");
    report.contribution = read_optional(fields, "contribution", read_facts);
    report.missing_contributions = fields.sites("missing_contributions");
    report.missing_means = fields.sites("missing_means");
    report.complaints = read_list(fields, "complaints", read_complaint);
    report.least_norms = read_list(fields, "least_norms", read_least_norm);
    if (const Json* held = fields.optional("held")) report.held = fields.hash_of(*held, "held");
    fields.done();
    return report;
}

Hello read_hello(Fields fields) {
    Hello hello;
    for (const auto& [key, value] : fields.map("settings").items())
        hello.settings[key] = fields.text_of(value, "settings");
    hello.blocks_per_epoch = fields.integer("blocks_per_epoch", 1, Fields::kMost);
    for (const Json& elements : fields.list("fragment_elements")) {
        const bool valid = elements.is_number_integer() && elements.get<std::int64_t>() > 0;
        fields.demand(valid, "fragment_elements", "holds something else than sizes");
        hello.fragment_elements.push_back(elements.get<std::int64_t>());
    }
    fields.demand(!hello.fragment_elements.empty(), "fragment_elements", "is empty");
    hello.checkpoints = read_list(fields, "checkpoints", read_checkpoint);
    fields.done();
    return hello;
}

SitePlan read_site_plan(Fields fields) {
    SitePlan plan;
    plan.site = fields.site("site");
    plan.incarnation = fields.incarnation("incarnation");
    plan.contributes = fields.boolean("contributes");
    plan.inner_steps = fields.count("inner_steps");
    plan.weight = fields.number("weight");
    plan.blocks = read_list(fields, "blocks", read_block);
    plan.send_bytes_per_second = fields.number("send_bytes_per_second");
    fields.demand(plan.weight >= 0, "weight", "is negative");
    fields.demand(plan.send_bytes_per_second >= 0, "send_bytes_per_second", "is negative");
    fields.demand(block_count(plan.blocks) == plan.inner_steps, "blocks", "are not one for each step");
    fields.done();
    return plan;
}

FragmentPlan read_fragment_plan(Fields fields) {
    FragmentPlan plan;
    plan.id = fields.id<FragmentId>("id");
    plan.elements = fields.integer("elements", 1, Fields::kMost);
    plan.chunk_elements = fields.integer("chunk_elements", 1, Fields::kMost);
    plan.start_step = fields.id<Step>("start_step");
    fields.done();
    return plan;
}

MethodNumbers read_numbers(Fields fields) {
    MethodNumbers numbers;
    numbers.method = fields.text("method");
    numbers.codec = fields.text("codec");
    numbers.outer_lr = fields.number("outer_lr");
    numbers.outer_momentum = fields.number("outer_momentum");
    numbers.nesterov = fields.boolean("nesterov");
    numbers.second_decay = fields.number("second_decay");
    numbers.epsilon = fields.number("epsilon");
    numbers.alpha = fields.number("alpha");
    numbers.overlap_steps = fields.count("overlap_steps");
    fields.done();
    return numbers;
}

RoundPlan read_plan(Fields fields) {
    RoundPlan plan;
    plan.run_id = fields.text("run_id");
    plan.term = fields.id<Term>("term");
    plan.round = fields.id<Round>("round");
    plan.first_step = fields.id<Step>("first_step");
    plan.state_before = fields.hash("state_before");
    plan.first_attempt = fields.id<Attempt>("first_attempt");
    plan.sites = read_list(fields, "sites", read_site_plan);
    plan.fragments = read_list(fields, "fragments", read_fragment_plan);
    plan.numbers = read_numbers(fields.within("numbers"));
    for (const Json& step : fields.list("checkpoint_steps")) {
        const bool valid = step.is_number_integer() && step.get<std::int64_t>() >= 0;
        fields.demand(valid, "checkpoint_steps", "holds something else than steps");
        plan.checkpoint_steps.push_back(Step(step.get<std::int64_t>()));
    }
    plan.evaluate = fields.boolean("evaluate");
    if (const Json* step = fields.optional("stop_step")) {
        fields.demand(step->is_number_integer() && step->get<std::int64_t>() >= 0, "stop_step",
                      "is not a step");
        plan.stop_step = Step(step->get<std::int64_t>());
    }
    plan.reason = fields.text("reason");
    fields.demand(!plan.fragments.empty(), "fragments", "is empty");
    fields.demand(ascending_sites(plan.sites), "sites", "are not in order");
    fields.done();
    return plan;
}

Contributor read_contributor(Fields fields) {
    Contributor contributor{fields.site("site"), fields.number("weight")};
    fields.demand(contributor.weight > 0, "weight", "is not positive");
    fields.done();
    return contributor;
}

OwnerShare read_owner(Fields fields) {
    OwnerShare owner{fields.site("site"), fields.count("first_chunk"),
                     fields.integer("chunks", 1, Fields::kMost)};
    fields.done();
    return owner;
}

// What attempts and commits have in common.
template <class Decision>
void read_layout(Fields& fields, Decision& decision) {
    decision.round = fields.id<Round>("round");
    decision.fragment = fields.id<FragmentId>("fragment");
    decision.attempt = fields.id<Attempt>("attempt");
    decision.resend_since = fields.id<Attempt>("resend_since");
    decision.direct = fields.boolean("direct");
    decision.contributors = read_list(fields, "contributors", read_contributor);
    decision.owners = read_list(fields, "owners", read_owner);
    decision.members = fields.sites("members");
    fields.demand(!decision.contributors.empty(), "contributors", "is empty");
    fields.demand(ascending_sites(decision.contributors), "contributors", "are not in order");
    std::int64_t next = 0;
    for (const OwnerShare& owner : decision.owners) {
        fields.demand(owner.first_chunk == next, "owners", "leave a gap or overlap");
        next += owner.chunks;
    }
    fields.demand(decision.direct == decision.owners.empty(), "owners", "do not fit the mode");
}

AttemptPlan read_attempt(Fields fields) {
    AttemptPlan attempt;
    read_layout(fields, attempt);
    attempt.reason = fields.text("reason");
    fields.done();
    return attempt;
}

Commit read_commit(Fields fields) {
    Commit commit;
    read_layout(fields, commit);
    commit.state_before = fields.hash("state_before");
    commit.chunks = fields.integer("chunks", 1, Fields::kMost);
    commit.hash = fields.hash("hash");
    commit.apply_step = fields.id<Step>("apply_step");
    commit.last_step = fields.id<Step>("last_step");
    commit.fragments = fields.integer("fragments", 1, Fields::kMost);
    commit.numbers = read_numbers(fields.within("numbers"));
    const std::int64_t owned = commit.owners.empty()
                                   ? commit.chunks
                                   : commit.owners.back().first_chunk + commit.owners.back().chunks;
    fields.demand(owned == commit.chunks, "owners", "do not own every chunk");
    fields.done();
    return commit;
}

StartFrom read_start(Fields fields) {
    StartFrom start;
    start.kind = fields.enumeration("kind", StartFrom::Kind::checkpoint);
    start.step = fields.id<Step>("step");
    start.round = fields.id<Round>("round");
    start.state_hash = fields.hash("state_hash");
    start.fragments_applied = fields.count("fragments_applied");
    start.reason = fields.text("reason");
    fields.done();
    return start;
}

Ending read_ending(Fields fields) {
    Ending ending;
    ending.exit_code = int(fields.integer("exit_code", 0, 255));
    ending.checkpoint = fields.boolean("checkpoint");
    ending.reason = fields.text("reason");
    fields.done();
    return ending;
}

SiteView read_site_view(Fields fields) {
    SiteView site;
    site.info = read_site(fields.within("info"));
    site.standing = fields.enumeration("standing", Standing::refused);
    site.phase = fields.enumeration("phase", Phase::finished);
    site.round = fields.id<Round>("round");
    site.fragments_started = fields.count("fragments_started");
    site.blocked = fields.boolean("blocked");
    site.reason = fields.text("reason");
    fields.done();
    return site;
}

Ledger read_ledger(Fields fields) {
    Ledger ledger;
    ledger.blocks_per_epoch = fields.integer("blocks_per_epoch", 1, Fields::kMost);
    ledger.next_epoch = fields.count("next_epoch");
    ledger.next_block = fields.integer("next_block", 0, ledger.blocks_per_epoch - 1);
    ledger.returned = read_list(fields, "returned", read_block);
    for (const Json& value : fields.list("leases")) {
        Fields lease = fields.item(value, "leases");
        const SiteId site = lease.site("site");
        ledger.leases[site] = read_list(lease, "blocks", read_block);
        lease.done();
    }
    fields.done();
    return ledger;
}

PeerTraffic read_peer_traffic(Fields fields) {
    PeerTraffic peer{fields.site("peer"),
                     fields.count("payload_bytes_sent"),
                     fields.count("payload_bytes_received"),
                     fields.count("wire_bytes_sent"),
                     fields.count("wire_bytes_received"),
                     fields.number("round_trip_seconds")};
    fields.demand(peer.round_trip_seconds >= 0, "round_trip_seconds", "is negative");
    fields.done();
    return peer;
}

RoundCost read_cost(Fields fields) {
    RoundCost cost;
    cost.round = fields.id<Round>("round");
    cost.inner_steps = fields.integer("inner_steps", 1, Fields::kMost);
    cost.step_seconds = fields.number("step_seconds");
    cost.round_seconds = fields.number("round_seconds");
    cost.exchange_seconds = fields.number("exchange_seconds");
    cost.raw_bytes_sent = fields.count("raw_bytes_sent");
    cost.peers = read_list(fields, "peers", read_peer_traffic);
    fields.demand(cost.step_seconds >= 0 && cost.round_seconds >= 0 && cost.exchange_seconds >= 0,
                  "step_seconds", "and its like are not times");
    fields.done();
    return cost;
}

Evaluation read_evaluation(Fields fields) {
    Evaluation evaluation;
    evaluation.round = fields.id<Round>("round");
    evaluation.loss_sum = fields.number("loss_sum");
    evaluation.tokens = fields.count("tokens");
    fields.done();
    return evaluation;
}

KeptFragment read_kept(Fields fields) {
    KeptFragment kept;
    kept.round = fields.id<Round>("round");
    kept.fragment = fields.id<FragmentId>("fragment");
    fields.done();
    return kept;
}

Report report_of(const nlohmann::json& body) {
    Fields fields(body, "report");
    Report report;
    report.run_id = fields.text("run_id");
    report.site = read_site(fields.within("site"));
    report.term = fields.id<Term>("term");
    report.version = fields.count("version");
    report.sequence = fields.integer("sequence", 1, Fields::kMost);
    report.phase = fields.enumeration("phase", Phase::finished);
    report.round = fields.id<Round>("round");
    report.steps_done = fields.id<Step>("steps_done");
    report.fragments_applied = fields.count("fragments_applied");
    report.state_hash = fields.hash("state_hash");
    report.progress = fields.unsigned_integer("progress");
    report.leaving = fields.boolean("leaving");
    report.send_bytes_per_second = fields.number("send_bytes_per_second");
    fields.demand(report.send_bytes_per_second >= 0, "send_bytes_per_second", "is negative");
    report.fragments = read_list(fields, "fragments", read_fragment_report);
    report.kept = read_list(fields, "kept", read_kept);
    report.last_cost = read_optional(fields, "last_cost", read_cost);
    report.evaluation = read_optional(fields, "evaluation", read_evaluation);
    report.hello = read_optional(fields, "hello", read_hello);
    fields.demand(report.site.incarnation != Incarnation(0), "site", "has no incarnation");
    fields.done();
    return report;
}

View view_of(const nlohmann::json& body) {
    Fields fields(body, "view");
    View view;
    view.run_id = fields.text("run_id");
    view.term = fields.id<Term>("term");
    view.version = fields.count("version");
    view.sites = read_list(fields, "sites", read_site_view);
    view.round = fields.id<Round>("round");
    if (const Json* hash = fields.optional("state_before"))
        view.state_before = fields.hash_of(*hash, "state_before");
    view.start = read_optional(fields, "start", read_start);
    view.plan = read_optional(fields, "plan", read_plan);
    view.attempts = read_list(fields, "attempts", read_attempt);
    view.open_commits = read_list(fields, "open_commits", read_commit);
    view.commits = read_list(fields, "commits", read_commit);
    view.evaluation = read_optional(fields, "evaluation", read_evaluation);
    view.ending = read_optional(fields, "ending", read_ending);
    view.hello_known = fields.boolean("hello_known");
    view.refusal = fields.text("refusal");
    fields.done();
    return view;
}

RoundRecord round_record_of(const nlohmann::json& body) {
    Fields fields(body, "round");
    RoundRecord record;
    record.plan = read_plan(fields.within("plan"));
    record.ledger = read_ledger(fields.within("ledger"));
    record.attempts = read_list(fields, "attempts", read_attempt);
    for (const Json& fragment : fields.list("resent")) {
        fields.demand(fragment.is_number_unsigned(), "resent", "holds something else than fragments");
        record.resent.push_back(FragmentId(fragment.get<std::int32_t>()));
    }
    record.commits = read_list(fields, "commits", read_commit);
    fields.done();
    return record;
}

nlohmann::json unpack(std::span<const std::byte> bytes, const char* kind) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    nlohmann::json message = nlohmann::json::from_msgpack(begin, begin + bytes.size(), true, false);
    if (message.is_discarded()) {
        throw CorruptDataError(
            fmt::format("[control] {} bytes are no MessagePack: expected a {}", bytes.size(), kind));
    }
    MessageFields<nlohmann::json> fields(message, kind);
    const std::string found = fields.text("kind");
    if (found != kind)
        throw CorruptDataError(fmt::format("[control] a {} came where a {} belongs", found, kind));
    const std::int64_t version = fields.integer("version", 0, 1 << 20);
    if (version != kControlVersion) {
        throw CorruptDataError(
            fmt::format("[control] a {} of version {}; this program speaks version {}: use the same "
                        "release everywhere",
                        kind, version, kControlVersion));
    }
    return fields.map("body");
}

}  // namespace

Report decode_report(std::span<const std::byte> bytes) {
    return report_of(unpack(bytes, "report"));
}

View decode_view(std::span<const std::byte> bytes) {
    return view_of(unpack(bytes, "view"));
}

RoundRecord decode_round_record(std::span<const std::byte> bytes) {
    return round_record_of(unpack(bytes, "round"));
}

RoundPlan decode_round_plan(std::span<const std::byte> bytes) {
    const nlohmann::json body = unpack(bytes, "plan");
    return read_plan(Fields(body, "plan"));
}

RoundCost decode_round_cost(std::span<const std::byte> bytes) {
    const nlohmann::json body = unpack(bytes, "cost");
    return read_cost(Fields(body, "cost"));
}

}  // namespace atl
