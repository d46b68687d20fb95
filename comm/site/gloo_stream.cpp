#include "comm/site/gloo_stream.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <mutex>

namespace atl {
namespace {

constexpr std::size_t kBlockBytes = 512 << 10;
constexpr int kBlocksAhead = 8;  // in each direction
constexpr std::uint64_t kSlot = 0;
constexpr int kGlooConnectFactor = 5;  // Gloo waits five of its timeouts for a connection
constexpr std::uint32_t kMostAddressBytes = 4096;

// A block as it travels: how many of its bytes count, then those bytes.
class Block {
  public:
    explicit Block(gloo::transport::Context& context)
        : memory_(sizeof(std::uint64_t) + kBlockBytes),
          buffer_(context.createUnboundBuffer(memory_.data(), memory_.size())) {}

    gloo::transport::UnboundBuffer& buffer() { return *buffer_; }
    std::span<std::byte> bytes() { return std::span(memory_).subspan(sizeof(std::uint64_t)); }
    std::size_t used() const {
        std::uint64_t used = 0;
        std::memcpy(&used, memory_.data(), sizeof used);
        return std::min<std::size_t>(used, kBlockBytes);
    }
    void send(int peer, std::uint64_t used) {
        std::memcpy(memory_.data(), &used, sizeof used);
        buffer_->send(peer, kSlot, 0, sizeof used + used);
    }
    void receive(int peer) { buffer_->recv(peer, kSlot); }

  private:
    std::vector<std::byte> memory_;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;  // over the memory: ends before it
};

class GlooStream final : public FrameStream {
  public:
    GlooStream(const OpenConnection& connection, Milliseconds silence)
        : connection_(connection.stream),
          silence_(silence),
          rank_(connection.self < connection.peer ? 0 : 1),
          peer_(1 - rank_) {}
    ~GlooStream() override { end("this side has let go of it"); }

    bool connect();

    bool receive(std::span<std::byte> bytes) override;
    bool send(std::span<const std::byte> first, std::span<const std::byte> second) override;
    double round_trip_seconds() const override { return connection_->round_trip_seconds(); }
    std::int64_t unacknowledged_bytes() const override { return 0; }  // Gloo doesn't say
    void end(const std::string& why) override;
    std::string why() const override { return connection_->why(); }

  private:
    bool exchange_addresses(std::vector<char>& address) const;
    bool take_block();
    bool free_block(Block& block, bool& under_way);
    bool send_block(std::size_t used);
    template <class Work>
    bool with_gloo(const Work& work);

    std::shared_ptr<TcpStream> connection_;  // shared with the session that made it
    Milliseconds silence_;
    int rank_;
    int peer_;
    std::shared_ptr<gloo::transport::Device> device_;    // shared with Gloo's own objects
    std::shared_ptr<gloo::transport::Context> context_;  // likewise
    struct Outgoing {
        std::unique_ptr<Block> block;
        bool under_way = false;
    };
    std::mutex ending_;
    std::array<std::unique_ptr<Block>, kBlocksAhead> arriving_;  // of the reader; each is asked for
    std::array<Outgoing, kBlocksAhead> leaving_;                 // of the writer
    std::size_t next_arriving_ = 0;
    std::size_t next_leaving_ = 0;
    std::size_t taken_ = 0;  // bytes of the block that is being read; it is the next one
    bool has_block_ = false;
};

// False if Gloo says that the connection has ended, or has ended it because of a deadline. Besides its own exceptions it
// throws what it takes for broken invariants, such as a transfer on a closed connection.
template <class Work>
bool GlooStream::with_gloo(const Work& work) {
    try {
        if (work()) return true;
        end("this side has ended it");
    } catch (const std::exception& error) {
        end(error.what());
    }
    return false;
}

bool GlooStream::connect() {
    // Gloo writes to sockets without MSG_NOSIGNAL: a lost peer must be an error here, not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    return with_gloo([&] {
        gloo::transport::tcp::attr attributes(connection_->local_host().c_str());
        device_ = gloo::transport::tcp::CreateDevice(attributes);
        context_ = device_->createContext(rank_, 2);
        context_->setTimeout(std::max(Milliseconds(1), silence_ / kGlooConnectFactor));
        auto& pair = context_->createPair(peer_);
        std::vector<char> address = pair->address().bytes();
        if (!exchange_addresses(address)) return false;
        pair->connect(address);
        for (auto& block : arriving_) {
            block = std::make_unique<Block>(*context_);
            block->receive(peer_);
        }
        for (auto& [block, under_way] : leaving_) block = std::make_unique<Block>(*context_);
        return true;
    });
}

// Over the connection on which the two have met: a length, then the bytes.
bool GlooStream::exchange_addresses(std::vector<char>& address) const {
    const auto own = static_cast<std::uint32_t>(address.size());
    std::uint32_t theirs = 0;
    if (!connection_->send(std::as_bytes(std::span(&own, 1)), std::as_bytes(std::span(address))))
        return false;
    if (!connection_->receive(std::as_writable_bytes(std::span(&theirs, 1)))) return false;
    if (theirs == 0 || theirs > kMostAddressBytes) return false;
    address.resize(theirs);
    return connection_->receive(std::as_writable_bytes(std::span(address)));
}

bool GlooStream::receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        if (!has_block_ && !take_block()) return false;
        Block& block = *arriving_[next_arriving_];
        const auto ready = block.bytes().first(block.used()).subspan(taken_);
        const std::size_t count = std::min(bytes.size(), ready.size());
        if (count > 0) std::memcpy(bytes.data(), ready.data(), count);
        bytes = bytes.subspan(count);
        taken_ += count;
        if (taken_ < block.used()) continue;
        if (!with_gloo([&] { return block.receive(peer_), true; })) return false;
        has_block_ = false;
        next_arriving_ = (next_arriving_ + 1) % arriving_.size();
    }
    return true;
}

// A wait that times out ends the context, as silence ends a connection.
bool GlooStream::take_block() {
    has_block_ = with_gloo([&] { return arriving_[next_arriving_]->buffer().waitRecv(nullptr, silence_); });
    taken_ = 0;
    return has_block_;
}

// What is short waits until it has left, with all before it: whoever sends it next may be about to end.
bool GlooStream::send(std::span<const std::byte> first, std::span<const std::byte> second) {
    const bool is_short = first.size() + second.size() <= kBlockBytes / 8;
    while (!first.empty() || !second.empty()) {
        auto& [block, under_way] = leaving_[next_leaving_];
        if (!free_block(*block, under_way)) return false;
        const auto space = block->bytes();
        const std::size_t of_first = std::min(first.size(), space.size());
        const std::size_t of_second = std::min(second.size(), space.size() - of_first);
        if (of_first > 0) std::memcpy(space.data(), first.data(), of_first);
        if (of_second > 0) std::memcpy(space.data() + of_first, second.data(), of_second);
        first = first.subspan(of_first);
        second = second.subspan(of_second);
        if (!send_block(of_first + of_second)) return false;
    }
    for (auto& [block, under_way] : leaving_) {
        if (is_short && !free_block(*block, under_way)) return false;
    }
    return true;
}

bool GlooStream::send_block(std::size_t used) {
    auto& [block, under_way] = leaving_[next_leaving_];
    under_way = with_gloo([&] { return block->send(peer_, used), true; });
    next_leaving_ = (next_leaving_ + 1) % leaving_.size();
    return under_way;
}

bool GlooStream::free_block(Block& block, bool& under_way) {
    if (!under_way) return true;
    if (!with_gloo([&] { return block.buffer().waitSend(nullptr, silence_); })) return false;
    under_way = false;
    return true;
}

void GlooStream::end(const std::string& why) {
    const std::scoped_lock lock(ending_);
    connection_->end(why);
    for (const auto& block : arriving_)
        if (block) block->buffer().abortWaitRecv();
    for (const auto& [block, under_way] : leaving_)
        if (block) block->buffer().abortWaitSend();
    if (context_) context_->getPair(peer_)->close();  // the other side learns of it now
}

}  // namespace

std::shared_ptr<FrameStream> make_gloo_stream(const OpenConnection& connection, Milliseconds silence) {
    auto stream = std::make_shared<GlooStream>(connection, silence);
    if (!stream->connect()) return nullptr;
    return stream;
}

}  // namespace atl
