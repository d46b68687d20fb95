#include "comm/site/shared_memory_stream.h"

#include <utility>

#include "comm/site/shared_slots.h"

namespace atl {

namespace {

constexpr std::size_t kLeastBytes = 16 << 10;  // of a body; what is shorter goes with its head
constexpr std::uint32_t kInStream = ~std::uint32_t{0};

class SharedMemoryStream final : public FrameStream {
  public:
    SharedMemoryStream(std::shared_ptr<TcpStream> connection, std::unique_ptr<SharedSlots> own,
                       std::shared_ptr<SharedSlotsView> theirs)
        : connection_(std::move(connection)), own_(std::move(own)), theirs_(std::move(theirs)) {}

    bool receive(std::span<std::byte> bytes) override { return connection_->receive(bytes); }
    std::optional<Payload> receive_body(BufferPool& pool, std::size_t bytes) override;
    void take_body(OutgoingFrame& frame) override;
    bool write(const OutgoingFrame& frame) override;
    bool send(std::span<const std::byte> first, std::span<const std::byte> second) override {
        return connection_->send(first, second);
    }
    bool shares_memory() const override { return true; }
    double round_trip_seconds() const override { return connection_->round_trip_seconds(); }
    std::int64_t unacknowledged_bytes() const override { return connection_->unacknowledged_bytes(); }
    void set_send_rate(double bytes_per_second) override { connection_->set_send_rate(bytes_per_second); }
    void end(const std::string& why) override { connection_->end(why); }
    std::string why() const override { return connection_->why(); }

  private:
    std::shared_ptr<TcpStream> connection_;  // shared with the session that made it
    std::unique_ptr<SharedSlots> own_;
    std::shared_ptr<SharedSlotsView> theirs_;  // shared with the bodies that lie there
};

void SharedMemoryStream::take_body(OutgoingFrame& frame) {
    if (frame.body.size() < kLeastBytes) return;
    const auto slot = own_->put(frame.body.bytes());
    if (!slot) return;
    frame.taken_by = this;
    frame.place = *slot;
}

// After the head of a body that may lie in a slot: which one.
bool SharedMemoryStream::write(const OutgoingFrame& frame) {
    if (frame.body.size() < kLeastBytes) return FrameStream::write(frame);
    const bool is_taken = frame.taken_by == this;
    const std::uint32_t place = is_taken ? frame.place : kInStream;
    if (!send(frame.head, std::as_bytes(std::span(&place, 1)))) return false;
    return is_taken || send(frame.body.bytes(), {});
}

std::optional<Payload> SharedMemoryStream::receive_body(BufferPool& pool, std::size_t bytes) {
    if (bytes < kLeastBytes) return FrameStream::receive_body(pool, bytes);
    std::uint32_t slot = kInStream;
    if (!receive(std::as_writable_bytes(std::span(&slot, 1)))) return {};
    if (slot == kInStream) return FrameStream::receive_body(pool, bytes);
    auto body = SharedSlotsView::take(theirs_, slot, bytes);
    if (!body) end("a body where none can be");
    return body;
}

// Sends one value and waits for the other side's.
template <class Value>
std::optional<Value> swap_values(TcpStream& connection, const Value& own) {
    Value theirs;
    if (!connection.send(std::as_bytes(std::span(&own, 1)), {})) return {};
    if (!connection.receive(std::as_writable_bytes(std::span(&theirs, 1)))) return {};
    return theirs;
}

}  // namespace

std::shared_ptr<FrameStream> make_shared_memory_stream(const std::shared_ptr<TcpStream>& connection) {
    auto own = SharedSlots::create();
    const auto offer = swap_values(*connection, own ? own->offer() : SharedSlotsOffer{});
    if (!offer) return nullptr;
    auto theirs = own ? SharedSlotsView::open(*offer) : nullptr;
    const std::uint32_t sees = theirs ? 1 : 0;
    const auto is_seen = swap_values(*connection, sees);
    if (!is_seen) return nullptr;
    if (sees == 0 || *is_seen == 0) return connection;
    return std::make_shared<SharedMemoryStream>(connection, std::move(own), std::move(theirs));
}

}  // namespace atl
