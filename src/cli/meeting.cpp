#include "cli/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "comm/site/zmq_transport.h"
#include "core/error.h"

namespace atl::cli {
namespace {

constexpr std::uint8_t kText = 0;
constexpr std::uint8_t kClockQuestion = 1;
constexpr std::uint8_t kClockAnswer = 2;
constexpr int kClockQuestions = 8;
constexpr int kHost = 0;
constexpr std::chrono::milliseconds kMargin{2};  // beyond the longest round trip, for a busy machine

std::unique_ptr<SiteTransport> open_transport(int place, const std::string& bind) {
    std::random_device device;
    TransportOptions options;
    options.self = SiteId(place);
    options.incarnation = Incarnation(device() | 1U);
    options.run_id = "meeting";
    options.accept_unlisted = place == kHost;
    return make_zmq_transport(options, {.bind = bind});
}

std::string text_of(const Frame& frame) {
    const auto bytes = frame.body.bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::int64_t number_of(const std::string& text) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// Several texts in one: each behind its length.
std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += fmt::format("{}:{}", text.size(), text);
    return all;
}
std::vector<std::string> split(const std::string& all) {
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t colon = all.find(':', at);
        const auto length = static_cast<std::size_t>(number_of(all.substr(at, colon - at)));
        texts.push_back(all.substr(colon + 1, length));
        at = colon + 1 + length;
    }
    return texts;
}

}  // namespace

Meeting::Meeting(int place, int members, Milliseconds patience, std::unique_ptr<SiteTransport> transport)
    : place_(place), members_(members), patience_(patience), transport_(std::move(transport)) {}

Meeting Meeting::host(const std::string& address, int members, Milliseconds patience) {
    return Meeting(kHost, members, patience, open_transport(kHost, address));
}

Meeting Meeting::guest(const std::string& address, int place, Milliseconds patience) {
    Meeting meeting(place, 0, patience, open_transport(place, ""));
    meeting.transport_->set_peers({{SiteId(kHost), Incarnation(), address}});
    meeting.synchronise();
    meeting.send(kHost, kText, fmt::format("{}", meeting.round_trip_.count()));
    meeting.members_ = static_cast<int>(number_of(meeting.receive(kHost)));
    return meeting;
}

// The host's first call finds every guest's first words: the round trip it measured.
void Meeting::begin() {
    if (place_ != kHost || longest_round_trip_.count() > 0) return;
    longest_round_trip_ = std::chrono::nanoseconds(1);
    for (int guest = 1; guest < members_; ++guest) {
        longest_round_trip_ =
            std::max(longest_round_trip_, std::chrono::nanoseconds(number_of(receive(guest))));
    }
    for (int guest = 1; guest < members_; ++guest) send(guest, kText, fmt::format("{}", members_));
}

void Meeting::synchronise() {
    round_trip_ = std::chrono::nanoseconds::max();
    for (int question = 0; question < kClockQuestions; ++question) {
        send(kHost, kClockQuestion, {});
        const TimePoint asked = clock_.now();
        std::optional<Frame> answer;
        while (!answer || answer->leg != kClockAnswer) answer = next_frame("the host's clock");
        const TimePoint answered = clock_.now();
        if (answered - asked >= round_trip_) continue;
        round_trip_ = answered - asked;
        const TimePoint middle = asked + round_trip_ / 2;
        ahead_ = std::chrono::nanoseconds(number_of(text_of(*answer))) - middle.time_since_epoch();
    }
}

std::vector<std::string> Meeting::gather(const std::string& mine) {
    begin();
    if (place_ != kHost) {
        send(kHost, kText, mine);
        return {};
    }
    std::vector<std::string> texts{mine};
    for (int guest = 1; guest < members_; ++guest) texts.push_back(receive(guest));
    return texts;
}

std::string Meeting::announce(const std::string& text) {
    begin();
    if (place_ != kHost) return receive(kHost);
    for (int guest = 1; guest < members_; ++guest) send(guest, kText, text);
    return text;
}

std::vector<std::string> Meeting::gather_all(const std::string& mine) {
    return split(announce(joined(gather(mine))));
}

TimePoint Meeting::agree_on_moment(Milliseconds delay) {
    gather({});
    const TimePoint moment = clock_.now() + delay + kMargin + longest_round_trip_;
    const auto agreed = number_of(announce(fmt::format("{}", moment.time_since_epoch().count())));
    return TimePoint(std::chrono::nanoseconds(agreed) - ahead_);
}

// A guest that is not here yet is waited for.
void Meeting::send(int to, std::uint8_t leg, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    Frame frame;
    frame.kind = FrameKind::control;
    frame.leg = leg;
    frame.to = SiteId(to);
    frame.body = Payload::own({bytes.begin(), bytes.end()});
    const Deadline deadline = clock_.after(patience_);
    while (transport_->send(frame) != SendResult::accepted) {
        if (clock_.now() >= deadline)
            throw CommError(
                fmt::format("[bench] member {} can't be reached within {} ms", to, patience_.count()));
        if (auto event = transport_->poll(clock_.after(Milliseconds(10)))) {
            if (const auto* early = std::get_if<Frame>(&*event); early != nullptr && early->leg == kText)
                waiting_[early->from.value()].push_back(text_of(*early));
        }
    }
}

std::string Meeting::receive(int from) {
    auto& texts = waiting_[from];
    while (texts.empty()) {
        const Frame frame = next_frame(fmt::format("member {}", from));
        if (frame.leg == kText) waiting_[frame.from.value()].push_back(text_of(frame));
    }
    std::string text = std::move(texts.front());
    texts.erase(texts.begin());
    return text;
}

// Questions about the clock are answered on the way.
Frame Meeting::next_frame(const std::string& waiting_for) {
    const Deadline deadline = clock_.after(patience_);
    while (true) {
        auto event = transport_->poll(deadline);
        if (!event && clock_.now() >= deadline) {
            throw CommError(
                fmt::format("[bench] waited {} ms for {}; is it running?", patience_.count(), waiting_for));
        }
        if (!event) continue;
        if (auto* frame = std::get_if<Frame>(&*event)) {
            if (frame->leg != kClockQuestion) return std::move(*frame);
            send(frame->from.value(), kClockAnswer,
                 fmt::format("{}", clock_.now().time_since_epoch().count()));
        } else if (const auto& peer = std::get<PeerEvent>(*event); peer.kind == PeerEvent::Kind::lost) {
            throw CommError(fmt::format("[bench] member {} has gone: {}", peer.site, peer.detail));
        }
    }
}

}  // namespace atl::cli
