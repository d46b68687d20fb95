#include "exchange/state_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace atl {

namespace {

constexpr std::int64_t kPieceElements = 64 * 1024;
constexpr std::size_t kPiecesUnderWay = 4;
constexpr Milliseconds kAskAgain{1000};

struct WireIndex {
    std::int64_t round = 0;
    std::int64_t step = 0;
    std::uint64_t hash_high = 0;
    std::uint64_t hash_low = 0;
    std::int64_t elements = 0;
    std::int64_t piece_elements = kPieceElements;
    std::int64_t fragments_applied = 0;
};
static_assert(sizeof(WireIndex) == 56);

template <class Parts>
std::int64_t total_elements(const Parts& parts) {
    std::int64_t total = 0;
    for (const auto& part : parts) total += static_cast<std::int64_t>(part.size());
    return total;
}

std::int64_t piece_count(std::int64_t elements) {
    return (elements + kPieceElements - 1) / kPieceElements;
}

// Calls work(run of one part, offset within the piece) for the runs that make up a piece.
template <class Parts, class Work>
void for_each_run(const Parts& parts, std::int64_t piece, const Work& work) {
    const std::int64_t begin = piece * kPieceElements;
    const std::int64_t end = std::min(begin + kPieceElements, total_elements(parts));
    std::int64_t part_begin = 0;
    for (const auto& part : parts) {
        const auto part_end = part_begin + static_cast<std::int64_t>(part.size());
        const std::int64_t from = std::max(begin, part_begin);
        const std::int64_t to = std::min(end, part_end);
        if (from < to) {
            work(part.subspan(static_cast<std::size_t>(from - part_begin),
                              static_cast<std::size_t>(to - from)),
                 from - begin);
        }
        part_begin = part_end;
    }
}

std::vector<std::byte> piece_bytes(const std::vector<std::span<const float>>& parts, std::int64_t piece) {
    std::vector<std::byte> bytes;
    for_each_run(parts, piece, [&](std::span<const float> run, std::int64_t) {
        const auto view = std::as_bytes(run);
        bytes.insert(bytes.end(), view.begin(), view.end());
    });
    return bytes;
}

}  // namespace

void PublishedState::publish(const StateVersion& version, std::vector<std::span<const float>> parts) {
    const std::scoped_lock lock(mutex_);
    is_published_ = true;
    version_ = version;
    parts_ = std::move(parts);
    hashes_.clear();
}

void PublishedState::withdraw() {
    const std::scoped_lock lock(mutex_);
    is_published_ = false;
    parts_.clear();
    hashes_.clear();
}

std::vector<Frame> PublishedState::answer(const Frame& request) {
    const std::scoped_lock lock(mutex_);
    std::vector<Frame> frames;
    if (!is_published_) return frames;
    const auto wanted = request.body.bytes();
    if (wanted.empty() || request.round != version_.round) {
        frames.push_back(index_frame(request.from));
        return frames;
    }
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= wanted.size(); at += sizeof(std::uint32_t)) {
        std::uint32_t piece = 0;
        std::memcpy(&piece, wanted.data() + at, sizeof(piece));
        if (auto frame = piece_frame(request.from, piece)) frames.push_back(std::move(*frame));
    }
    return frames;
}

Frame PublishedState::index_frame(SiteId to) {
    const std::int64_t pieces = piece_count(total_elements(parts_));
    for (auto piece = static_cast<std::int64_t>(hashes_.size()); piece < pieces; ++piece) {
        hashes_.push_back(xxh3_64(piece_bytes(parts_, piece)));
    }
    const WireIndex index{version_.round.value(),  version_.step.value(),  version_.state_hash.high,
                          version_.state_hash.low, total_elements(parts_), kPieceElements,
                          version_.fragments_applied};
    std::vector<std::byte> bytes(sizeof(index) + hashes_.size() * sizeof(std::uint64_t));
    std::memcpy(bytes.data(), &index, sizeof(index));
    if (!hashes_.empty()) {
        std::memcpy(bytes.data() + sizeof(index), hashes_.data(), bytes.size() - sizeof(index));
    }
    Frame frame;
    frame.kind = FrameKind::state_index;
    frame.leg = static_cast<std::uint8_t>(kind_);
    frame.to = to;
    frame.round = version_.round;
    frame.body = Payload::own(std::move(bytes));
    return frame;
}

std::optional<Frame> PublishedState::piece_frame(SiteId to, std::int64_t piece) {
    if (piece >= piece_count(total_elements(parts_))) return {};
    Frame frame;
    frame.kind = FrameKind::state_piece;
    frame.leg = static_cast<std::uint8_t>(kind_);
    frame.to = to;
    frame.round = version_.round;
    frame.chunk = static_cast<std::int32_t>(piece);
    frame.body = Payload::own(piece_bytes(parts_, piece));
    return frame;
}

void StateFetcher::begin(FetchRequest request, TimePoint now) {
    if (request_) finish({}, "another fetch took its place");
    donors_.clear();
    chosen_.reset();
    for (const SiteId donor : request.donors) donors_[donor].next_index_request = now;
    request_ = std::move(request);
}

void StateFetcher::take(const Frame& frame) {
    if (!request_ || !donors_.contains(frame.from)) return;
    if (frame.leg != static_cast<std::uint8_t>(request_->kind)) return;
    if (frame.kind == FrameKind::state_index) take_index(frame);
    if (frame.kind == FrameKind::state_piece) take_piece(frame);
}

void StateFetcher::take_index(const Frame& frame) {
    const auto bytes = frame.body.bytes();
    WireIndex wire;
    if (bytes.size() < sizeof(wire)) return;
    std::memcpy(&wire, bytes.data(), sizeof(wire));
    const std::int64_t elements = total_elements(request_->parts);
    const auto pieces = static_cast<std::size_t>(piece_count(elements));
    if (wire.elements != elements || wire.piece_elements != kPieceElements ||
        bytes.size() != sizeof(wire) + pieces * sizeof(std::uint64_t)) {
        donors_.erase(frame.from);
        if (donors_.empty()) finish({}, "no donor has a state of this size");
        return;
    }
    Index index;
    index.version = {Round(wire.round), Step(wire.step), {wire.hash_high, wire.hash_low},
                     wire.fragments_applied};
    index.hashes.resize(pieces);
    if (pieces > 0)
        std::memcpy(index.hashes.data(), bytes.data() + sizeof(wire), bytes.size() - sizeof(wire));
    Donor& donor = donors_[frame.from];
    donor.index = std::move(index);
    for (const auto& [piece, asked] : donor.asked) unasked_.insert(piece);
    donor.asked.clear();
    choose_state();
}

// The newest state that any donor holds; among equals the one of the lowest site. Donors of another are not asked.
void StateFetcher::choose_state() {
    const Index* best = nullptr;
    for (const auto& [site, donor] : donors_) {
        if (donor.index && (best == nullptr || donor.index->version.round > best->version.round)) {
            best = &*donor.index;
        }
    }
    if (best == nullptr || (chosen_ && *chosen_ == *best)) return;
    if (chosen_ && chosen_->version.round == best->version.round)
        return;  // donors disagree: stay with the first
    chosen_ = *best;
    missing_.clear();
    for (std::size_t piece = 0; piece < chosen_->hashes.size(); ++piece) {
        missing_.insert(static_cast<std::int64_t>(piece));
    }
    unasked_ = missing_;
    for (auto& [site, donor] : donors_) donor.asked.clear();
}

void StateFetcher::take_piece(const Frame& frame) {
    const std::int64_t piece = frame.chunk;
    Donor& donor = donors_[frame.from];
    if (!chosen_ || frame.round != chosen_->version.round || !missing_.contains(piece)) return;
    donor.asked.erase(piece);
    const auto bytes = frame.body.bytes();
    std::size_t expected = 0;
    for_each_run(request_->parts, piece,
                 [&](std::span<float> run, std::int64_t) { expected += run.size_bytes(); });
    if (bytes.size() != expected || frame.body.hash() != chosen_->hashes[static_cast<std::size_t>(piece)]) {
        unasked_.insert(piece);
        donor.index.reset();  // not what it announced: asked again for its index before anything else
        return;
    }
    for_each_run(request_->parts, piece, [&](std::span<float> run, std::int64_t offset) {
        std::memcpy(run.data(), bytes.data() + offset * static_cast<std::int64_t>(sizeof(float)),
                    run.size_bytes());
    });
    missing_.erase(piece);
    unasked_.erase(piece);
    if (missing_.empty()) finish(chosen_->version, {});
}

void StateFetcher::step(SiteTransport& transport, TimePoint now) {
    if (!request_) return;
    if (now >= request_->deadline) {
        return finish(
            {}, fmt::format("{} pieces of the state did not come from {} donors in time",
                            chosen_ ? missing_.size() : 0, donors_.size()));
    }
    if (chosen_ && missing_.empty()) return finish(chosen_->version, {});
    for (auto& [site, donor] : donors_) ask(transport, site, donor, now);
}

void StateFetcher::ask(SiteTransport& transport, SiteId site, Donor& donor, TimePoint now) {
    Frame frame;
    frame.kind = FrameKind::state_request;
    frame.leg = static_cast<std::uint8_t>(request_->kind);
    frame.to = site;
    if (!donor.index) {
        if (now < donor.next_index_request) return;
        if (transport.send(std::move(frame)) == SendResult::accepted)
            donor.next_index_request = now + kAskAgain;
        return;
    }
    std::erase_if(donor.asked, [&](const auto& entry) {
        const bool overdue = now - entry.second >= kAskAgain;
        if (overdue && missing_.contains(entry.first)) unasked_.insert(entry.first);
        return overdue;
    });
    if (!chosen_ || *donor.index != *chosen_) return;
    std::vector<std::uint32_t> pieces;
    while (donor.asked.size() + pieces.size() < kPiecesUnderWay && !unasked_.empty()) {
        pieces.push_back(static_cast<std::uint32_t>(*unasked_.begin()));
        unasked_.erase(unasked_.begin());
    }
    if (pieces.empty()) return;
    const auto bytes = std::as_bytes(std::span(pieces));
    frame.round = chosen_->version.round;
    frame.body = Payload::own({bytes.begin(), bytes.end()});
    const bool sent = transport.send(std::move(frame)) == SendResult::accepted;
    for (const std::uint32_t piece : pieces) {
        if (sent) {
            donor.asked[piece] = now;
        } else {
            unasked_.insert(piece);
        }
    }
}

void StateFetcher::finish(std::optional<StateVersion> version, const std::string& problem) {
    const FetchRequest request = std::move(*request_);
    request_.reset();
    donors_.clear();
    request.done(std::move(version), problem);
}

}  // namespace atl
