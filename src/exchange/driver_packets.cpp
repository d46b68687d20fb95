// The driver's way with packets: encode, verify, keep, sum.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "codec/error_feedback.h"
#include "codec/weighted_mean.h"
#include "core/check.h"
#include "core/error.h"
#include "exchange/driver_tools.h"

namespace atl {

namespace {

constexpr std::int64_t kMostDeferredBytes = 64 << 20;
constexpr std::int64_t kMostChunksPerNorm = 16;

// Encoding keeps this far ahead of sending: links stay busy, and what was encoded is still in the cache when it is sent
// and summed.
constexpr std::int64_t kElementsAhead = 512 << 10;

// With owners, a chunk for each in turn, the next site's first, and as many of each as its part is long: no owner is sent
// everything at once while the others wait, and all parts end together.
std::deque<std::int64_t> encoding_order(std::int64_t chunks, const std::vector<OwnerShare>& owners,
                                        SiteId self) {
    struct Place {
        double part;       // of the owner's share that is sent before
        std::size_t turn;  // among owners, from the next site on
        std::int64_t chunk;
    };
    std::vector<Place> places;
    if (owners.empty()) {
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) places.push_back({0, 0, chunk});
    }
    const auto next = static_cast<std::size_t>(
        std::ranges::find_if(owners, [&](const OwnerShare& owner) { return owner.site > self; }) -
        owners.begin());
    for (std::size_t i = 0; i < owners.size(); ++i) {
        for (std::int64_t place = 0; place < owners[i].chunks; ++place) {
            places.push_back({static_cast<double>(place) / static_cast<double>(owners[i].chunks),
                              (i + owners.size() - next) % owners.size(), owners[i].first_chunk + place});
        }
    }
    std::ranges::sort(places, {},
                      [](const Place& place) { return std::tuple(place.part, place.turn, place.chunk); });
    std::deque<std::int64_t> order;
    for (const Place& place : places) order.push_back(place.chunk);
    return order;
}

MeanWeights weights_of(const std::vector<Contributor>& contributors) {
    std::vector<double> weights;
    for (const Contributor& contributor : contributors) weights.push_back(contributor.weight);
    return mean_weights(weights);
}

}  // namespace

SiteDriver::Tools& SiteDriver::tools() {
    ATOLL_CHECK(plan_.has_value(), "no plan names a codec yet");
    const Codec& agreed = codec_from_name(plan_->numbers.codec, options_.instruction_set);
    if (!tools_ || &tools_->contribution.codec != &agreed)
        tools_ = std::make_unique<Tools>(agreed, options_.zstd);
    return *tools_;
}

// A site that missed a round's plan reads its packets by the plan it has: fragments and codec change only with notice.
const FragmentPlan* SiteDriver::layout(Round round, FragmentId fragment) const {
    if (!plan_ || (plan_->round != round && round != state_.round())) return nullptr;
    for (const FragmentPlan& each : plan_->fragments) {
        if (each.id == fragment) return &each;
    }
    return nullptr;
}

// What a fragment's mean of the own round is made of: the commit, else the newest attempt.
std::optional<AttemptPlan> SiteDriver::basis(FragmentId fragment) const {
    const View& view = state_.view();
    for (const Commit& commit : view.commits) {
        if (commit.round == state_.round() && commit.fragment == fragment) return attempt_of(commit);
    }
    const AttemptPlan* attempt = view.attempt(fragment);
    if (attempt == nullptr || attempt->round != state_.round()) return {};
    return *attempt;
}

void SiteDriver::contribute(Contribution contribution) {
    if (contribution.work != work_ || contribution.round != state_.round())
        return;  // it was dropped meanwhile
    const FragmentPlan* plan = layout(contribution.round, contribution.fragment);
    ATOLL_CHECK(plan != nullptr, "fragment {} is not in the plan", contribution.fragment);
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(contribution.delta->size()), plan->elements);
    ATOLL_CHECK(!contribution.loss || (contribution.loss == contribution.delta &&
                                       needs_error_feedback(tools().contribution.codec)),
                "the loss of {} in a buffer of its own, or of a codec whose packets are views of Δ",
                tools().contribution.codec.name());
    counting_.begin(contribution.round, contribution.fragment, clock_.now());
    handle(site_event::ContributionDeclared{contribution.fragment, contribution.facts});
    if (!contribution.facts.finite) return;
    const auto attempt = basis(contribution.fragment);
    const std::vector<OwnerShare> owners = attempt ? attempt->owners : std::vector<OwnerShare>();
    encodings_.push_back(
        {std::move(contribution), encoding_order(plan->chunks(), owners, transport_.self())});
}

bool SiteDriver::encode_next() {
    if (encodings_.empty()) return false;
    Encoding& encoding = encodings_.front();
    const Contribution& own = encoding.contribution;
    const FragmentPlan plan = *layout(own.round, own.fragment);
    const auto ahead = static_cast<std::int64_t>(sends_.shortest());
    if (ahead > 0 && ahead * plan.chunk_elements >= kElementsAhead) return false;
    const std::int64_t chunk = encoding.chunks.front();
    encoding.chunks.pop_front();
    const std::span<const float> values(*own.delta);
    auto packet =
        tools().contribution.encoder.encode(values.subspan(static_cast<std::size_t>(plan.chunk_begin(chunk)),
                                                           static_cast<std::size_t>(plan.chunk_size(chunk))),
                                            own.delta);
    if (!packet) {
        refuse_own(own);
        return true;
    }
    if (own.loss) {
        subtract_decoded(tools().contribution.decoder, *packet,
                         std::span(*own.loss).subspan(static_cast<std::size_t>(plan.chunk_begin(chunk)),
                                                      static_cast<std::size_t>(plan.chunk_size(chunk))));
    }
    const FragmentId fragment = own.fragment;
    const PacketKey key{Leg::contribution, own.round, fragment, Attempt(), transport_.self(), chunk};
    const PacketDigest digest = packet->digest();
    store_.keep(key, std::move(*packet));
    if (encoding.chunks.empty()) encodings_.pop_front();
    if (const auto culprit = take_into_mean(key).culprit) complain_of(*culprit, key);
    handle(site_event::ContributionEncoded{fragment, chunk, digest});
    return true;
}

// The codec can't carry the own Δ: the whole contribution is withdrawn, never a chunk of it.
void SiteDriver::refuse_own(const Contribution& contribution) {
    log_.warning(
        "[exchange] round {} fragment {}: the own contribution has values that {} can't carry; it is "
        "withdrawn",
        contribution.round, contribution.fragment, tools().contribution.codec.name());
    ContributionFacts facts = contribution.facts;
    facts.finite = false;
    const FragmentId fragment = contribution.fragment;
    encodings_.pop_front();
    handle(site_event::ContributionDeclared{fragment, facts});
    next_report_ = {};
}

void SiteDriver::take_packet(ArrivedPacket arrived) {
    const PacketKey key = arrived.key;
    const FragmentPlan* plan = layout(key.round, key.fragment);
    if (plan == nullptr) {
        const auto bytes = static_cast<std::int64_t>(arrived.body.size());
        const bool keeps = key.round >= state_.round() && deferred_bytes_ + bytes <= kMostDeferredBytes;
        if (!keeps) return;  // asked for again when it is wanted
        deferred_bytes_ += bytes;
        deferred_.push_back(std::move(arrived));
        return;
    }
    if (key.chunk < 0 || key.chunk >= plan->chunks()) return;
    if (is_void(key)) return;
    auto packet = readable(arrived, *plan);
    if (!packet) return handle(site_event::PacketUnusable{key, ComplaintKind::undecodable});
    counting_.received(key, *packet);
    const PacketDigest digest = packet->digest();
    const bool sum_verifies = tools().of(key.leg).decoder.sum_verifies(*packet);
    if (!sum_verifies && !is_good(key, *packet))
        return handle(site_event::PacketUnusable{key, ComplaintKind::undecodable});
    auto before = store_.keep(key, std::move(*packet));
    if (before && before->digest() != digest) invalidate(key);
    const Taken taken = take_into_mean(key);
    if (taken.culprit) complain_of(*taken.culprit, key);
    if (taken.culprit == key.origin) return store_.erase(key);
    if (sum_verifies && !taken.was_summed && !is_good(key, *store_.find(key))) {
        put_back(key, digest, std::move(before));
        return handle(site_event::PacketUnusable{key, ComplaintKind::undecodable});
    }
    kept_in_hand_ = false;
    in_hand_ = key;
    handle(site_event::PacketArrived{key, arrived.sender, digest, least_norm(key)});
    in_hand_.reset();
    if (!kept_in_hand_) put_back(key, digest, std::move(before));
}

// The norm of a contribution's chunk, less what its codec may have added. One more pass over everything would cost a
// quarter of an exchange on loopback, so of many chunks only some are looked at, others in each round.
double SiteDriver::least_norm(const PacketKey& key) {
    if (key.leg == Leg::mean) return 0;
    const std::int64_t chunks = layout(key.round, key.fragment)->chunks();
    const std::int64_t one_of = std::clamp<std::int64_t>(chunks / 4, 1, kMostChunksPerNorm);
    if (key.chunk % one_of != key.round.value() % one_of) return 0;
    auto& [codec, encoder, decoder] = tools().contribution;
    return decoder.norm(*store_.find(key), scratch_) / codec.most_norm_gain();
}

// The packet under the key is not wanted after all: the one before it is.
void SiteDriver::put_back(const PacketKey& key, const PacketDigest& digest, std::optional<Packet> before) {
    store_.erase(key);
    if (!before) return;
    if (before->digest() != digest) invalidate(key);
    store_.keep(key, std::move(*before));
}

// Of an attempt that is over, of a site that no longer counts, or of a fragment whose mean the worker reads or has read:
// neither needed nor worth a complaint.
bool SiteDriver::is_void(const PacketKey& key) const {
    const std::int64_t closed = state_.fragments_applied() + (state_.phase() == Phase::applying ? 1 : 0);
    if (key.round == state_.round() && key.fragment.value() < closed) return true;
    const auto made_of = basis(key.fragment);
    if (key.round != state_.round() || !made_of || key.attempt > made_of->attempt) return false;
    return key.leg == Leg::mean ? key.attempt < made_of->attempt : !made_of->contributes(key.origin);
}

void SiteDriver::complain_of(SiteId culprit, PacketKey key) {
    key.origin = culprit;
    handle(site_event::PacketUnusable{key, ComplaintKind::non_finite});
}

// Whole and of the agreed form; its values have not been looked at.
std::optional<Packet> SiteDriver::readable(const ArrivedPacket& arrived, const FragmentPlan& plan) {
    const Payload& body = arrived.body;
    ReadPacket read =
        read_packet(arrived.header, std::make_shared<const Payload>(body), body.bytes(), body.hash(),
                    tools().of(arrived.key.leg).codec, plan.chunk_size(arrived.key.chunk));
    if (!read.packet) say_no_good(arrived.key, read.problem);
    return std::move(read.packet);
}

bool SiteDriver::is_good(const PacketKey& key, const Packet& packet) {
    const std::string problem = tools().of(key.leg).decoder.verify(packet);
    if (!problem.empty()) say_no_good(key, problem);
    return problem.empty();
}

void SiteDriver::say_no_good(const PacketKey& key, const std::string& problem) const {
    log_.warning("[exchange] round {} fragment {} chunk {}: the packet of site {} is no good: {}", key.round,
                 key.fragment, key.chunk, called(key.origin), problem);
}

// The chunk's mean was made of another packet than the one that stands there now.
void SiteDriver::invalidate(const PacketKey& key) {
    const auto mean = means_.find(key.fragment);
    if (mean != means_.end() && key.round == state_.round()) mean->second.forget();
}

void SiteDriver::retry_deferred() {
    std::deque<ArrivedPacket> packets = std::exchange(deferred_, {});
    deferred_bytes_ = 0;
    for (ArrivedPacket& packet : packets) take_packet(std::move(packet));
}

// Brings a packet that is in the store into its fragment's mean if that completes a chunk.
SiteDriver::Taken SiteDriver::take_into_mean(const PacketKey& key) {
    const FragmentPlan* plan = layout(key.round, key.fragment);
    const auto made_of = basis(key.fragment);
    if (key.round != state_.round() || plan == nullptr || !made_of) return {};
    FragmentMean& mean = means_[key.fragment];
    mean.prepare(*plan, *made_of);
    if (mean.has(key.chunk)) return {};
    if (made_of->direct && key.leg == Leg::contribution) return sum_directly(*plan, *made_of, key.chunk);
    if (!made_of->direct && key.leg == Leg::mean && key.attempt == made_of->attempt) {
        const std::vector<const Packet*> alone = {store_.find(key)};
        if (weighted_mean(tools().mean.decoder, alone, mean_weights(std::array{1.0}), mean.chunk(key.chunk)))
            return {.culprit = key.origin};
        mean.set(key.chunk);
        return {.was_summed = true};
    }
    return {};
}

SiteDriver::Taken SiteDriver::sum_directly(const FragmentPlan& plan, const AttemptPlan& made_of,
                                           std::int64_t chunk) {
    FragmentMean& mean = means_[plan.id];
    const PacketKey key{Leg::contribution, made_of.round, plan.id, Attempt(), SiteId(), chunk};
    const auto culprit = sum(made_of.contributors, key, mean.chunk(chunk), kernels::ReadAgain::late);
    if (culprit == kNothingYet) return {};
    if (culprit) return {.culprit = culprit};
    mean.set(chunk);
    return {.was_summed = true};
}

std::optional<SiteId> SiteDriver::sum(const std::vector<Contributor>& contributors, PacketKey key,
                                      std::span<float> mean, kernels::ReadAgain mean_is_read) {
    std::vector<const Packet*> packets;
    for (const Contributor& contributor : contributors) {
        key.origin = contributor.site;
        packets.push_back(store_.find(key));
        if (packets.back() == nullptr) return kNothingYet;
    }
    const auto place = weighted_mean(tools().contribution.decoder, packets, weights_of(contributors), mean,
                                     mean_is_read);
    if (!place) return {};
    return contributors[*place].site;
}

void SiteDriver::reduce(const site_action::ReduceChunk& order) {
    const FragmentPlan* plan = layout(order.round, order.fragment);
    if (plan == nullptr) return;
    scratch_.resize(static_cast<std::size_t>(plan->chunk_size(order.chunk)));
    const std::span<float> mean(scratch_);
    PacketKey key{Leg::contribution, order.round, order.fragment, order.attempt, SiteId(), order.chunk};
    const auto culprit = sum(order.contributors, key, mean, kernels::ReadAgain::soon);
    if (culprit == kNothingYet) return;
    if (culprit) return complain_of(*culprit, key);
    // The owner, too, goes on with what the others decode, never with the sum itself.
    auto packet = tools().mean.encoder.encode(mean);
    ATOLL_CHECK(packet.has_value(), "the mean of values that {} can carry",
                tools().contribution.codec.name());
    const PacketKey mine{Leg::mean,     order.round,       order.fragment,
                         order.attempt, transport_.self(), order.chunk};
    const PacketDigest digest = packet->digest();
    store_.keep(mine, std::move(*packet));
    take_into_mean(mine);
    handle(site_event::MeanReduced{order.fragment, order.attempt, order.chunk, digest});
}

std::int64_t SiteDriver::mean_bytes() const {
    std::int64_t bytes = static_cast<std::int64_t>(scratch_.capacity() * sizeof(float));
    for (const auto& [fragment, mean] : means_) bytes += mean.bytes();
    return bytes;
}

void SiteDriver::finish_mean(const Commit& commit) {
    const FragmentPlan* plan = layout(commit.round, commit.fragment);
    ATOLL_CHECK(plan != nullptr, "fragment {} is not in the plan", commit.fragment);
    const AttemptPlan made_of = attempt_of(commit);
    FragmentMean& mean = means_[commit.fragment];
    mean.prepare(*plan, made_of);
    for (std::int64_t chunk = 0; chunk < plan->chunks(); ++chunk) {
        if (mean.has(chunk)) continue;
        PacketKey key{Leg::mean, commit.round, commit.fragment, commit.attempt, SiteId(), chunk};
        if (commit.direct) {
            key.leg = Leg::contribution;
            if (const auto culprit =
                    sum(commit.contributors, key, mean.chunk(chunk), kernels::ReadAgain::late)) {
                throw CorruptDataError(
                    fmt::format("[exchange] round {} is committed, but chunk {} of fragment {} "
                                "can't be summed here: see site {}",
                                commit.round, chunk, commit.fragment, called(*culprit)));
            }
        } else {
            key.origin = made_of.owner_of(chunk);
            const Packet* packet = store_.find(key);
            ATOLL_CHECK(packet != nullptr, "chunk {} of a commit is not here", chunk);
            tools().mean.decoder.decode(*packet, mean.chunk(chunk));
        }
        mean.set(chunk);
    }
}

}  // namespace atl
