#include <deque>

#include "comm/island/gloo_collective.h"
#include "comm/island/gloo_mesh.h"
#include "core/check.h"

namespace atl {
namespace {

// The messages to, or from, one peer.
struct Lane {
    std::uint64_t posted = 0;
    std::deque<UnboundBuffer> pending;  // posted and not waited for, oldest first
};

class GlooPointToPoint final : public PointToPoint {
  public:
    GlooPointToPoint(const GlooOptions& options, Rendezvous& rendezvous)
        : mesh_(options, rendezvous), sends_(options.size), receives_(options.size) {}

    Rank rank() const override { return Rank(mesh_.rank()); }
    std::int32_t size() const override { return mesh_.size(); }

    void post_send(BufferView values, Rank peer) override {
        Lane& lane = lane_of(sends_, peer);
        const MeshCall call = mesh_.begin("send", Milliseconds(0), lane.posted++);
        auto [buffer, bytes] = message(values, sent_nothing_);
        mesh_.send(call, buffer, peer.value(), bytes);
        mesh_.flush();
        keep(lane, std::move(buffer));
    }
    void post_receive(BufferView values, Rank peer) override {
        Lane& lane = lane_of(receives_, peer);
        const MeshCall call = mesh_.begin("receive", Milliseconds(0), lane.posted++);
        auto [buffer, bytes] = message(values, received_nothing_);
        mesh_.receive(call, buffer, peer.value(), bytes);
        mesh_.flush();
        keep(lane, std::move(buffer));
    }
    void wait_send(Rank peer, Milliseconds timeout) override {
        const MeshCall call = mesh_.begin("send", timeout, 0);
        UnboundBuffer buffer = take(lane_of(sends_, peer));
        mesh_.wait_sent(call, buffer, peer.value());
    }
    void wait_receive(Rank peer, Milliseconds timeout) override {
        const MeshCall call = mesh_.begin("receive", timeout, 0);
        UnboundBuffer buffer = take(lane_of(receives_, peer));
        mesh_.wait_received(call, buffer, peer.value());
    }

    void give_up(const std::string& why) override { mesh_.give_up(why); }

  private:
    struct Message {
        UnboundBuffer buffer;
        RingChunk bytes;
    };

    // Gloo can't move nothing: an empty message is a byte that nobody reads.
    Message message(const BufferView& values, std::byte& nothing) {
        if (values.bytes() == 0) return {mesh_.buffer_over(&nothing, 1), {0, 1}};
        return {mesh_.buffer_over(values.data, values.bytes()), {0, values.bytes()}};
    }

    Lane& lane_of(std::vector<Lane>& lanes, Rank peer) const {
        ATOLL_CHECK(peer.value() >= 0 && peer.value() < size() && peer != rank(), "rank {} of {} and rank {}",
                    rank(), size(), peer);
        return lanes[static_cast<std::size_t>(peer.value())];
    }
    void keep(Lane& lane, UnboundBuffer buffer) {
        std::lock_guard lock(mutex_);
        lane.pending.push_back(std::move(buffer));
    }
    UnboundBuffer take(Lane& lane) {
        std::lock_guard lock(mutex_);
        ATOLL_CHECK(!lane.pending.empty(), "a wait for a message that was not posted");
        UnboundBuffer oldest = std::move(lane.pending.front());
        lane.pending.pop_front();
        return oldest;
    }

    GlooMesh mesh_;
    std::mutex mutex_;         // guards what is pending
    std::vector<Lane> sends_;  // by peer
    std::vector<Lane> receives_;
    std::byte sent_nothing_{};
    std::byte received_nothing_{};
};

}  // namespace

std::unique_ptr<PointToPoint> make_gloo_point_to_point(const GlooOptions& options, Rendezvous& rendezvous) {
    return std::make_unique<GlooPointToPoint>(options, rendezvous);
}

}  // namespace atl
