#include "comm/island/gloo_collective.h"

#include <dlfcn.h>
#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/island/lifelines.h"
#include "comm/island/ring.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

using UnboundBuffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

constexpr std::int64_t kSegmentBytes = 256 * 1024;  // two fit in a core's second-level cache
// Gloo waits five of its timeouts for a connection (gloo/transport/tcp/pair.h).
constexpr int kGlooConnectFactor = 5;
constexpr Milliseconds kNoticeTimeout{200};  // between Gloo's notice of a lost connection and the lifeline's

// One piece of the ring's work: what goes to the right neighbour while what comes from the left is awaited.
// Offsets and sizes in bytes.
struct RingTransfer {
    RingChunk sent;
    RingChunk received;
};

template <class T>
void add_into(std::byte* sum, const std::byte* values, std::int64_t bytes) {
    T* __restrict total = reinterpret_cast<T*>(sum);
    const T* __restrict added = reinterpret_cast<const T*>(values);
    for (std::int64_t i = 0; i < bytes / static_cast<std::int64_t>(sizeof(T)); ++i) total[i] += added[i];
}

class GlooCollective final : public IslandCollective {
  public:
    GlooCollective(const GlooOptions& options, Rendezvous& rendezvous)
        : options_(options), rank_(options.rank.value()), size_(options.size) {
        ATOLL_CHECK(rank_ >= 0 && rank_ < size_, "rank {} of {}", rank_, size_);
        if (size_ == 1) return;
        try {
            connect(rendezvous);
        } catch (const gloo::Exception& error) {
            throw CommError(
                fmt::format("[island] group {}: rank {} can't connect to all {} ranks within {} ms: {}",
                            options_.group, rank_, size_, options_.connect_timeout.count(), error.what()));
        }
    }

    Rank rank() const override { return Rank(rank_); }
    std::int32_t size() const override { return size_; }

    void all_reduce(BufferView values, Milliseconds timeout) override {
        ATOLL_CHECK(values.dtype == DType::f32 || values.dtype == DType::f64, "{}", name(values.dtype));
        begin("all_reduce", timeout);
        if (size_ == 1 || values.count == 0) return;
        reduce_around_the_ring(values);
        pass_around_the_ring(values);
    }

    void broadcast(BufferView values, Rank root, Milliseconds timeout) override {
        begin("broadcast", timeout);
        if (size_ == 1 || values.count == 0) return;
        UnboundBuffer buffer = buffer_over(values.data, values.bytes());
        if (rank_ == root.value()) {
            for (const int peer : all_peers()) send(buffer, peer, {0, values.bytes()});
            for (const int peer : all_peers()) wait_sent(buffer, peer);
        } else {
            receive(buffer, root.value(), {0, values.bytes()});
            wait_received(buffer, root.value());
        }
    }

    std::vector<std::string> gather(std::string_view bytes, Rank root, Milliseconds timeout) override {
        begin("gather", timeout);
        std::vector<std::string> all(size_);
        all[rank_] = bytes;
        if (rank_ == root.value()) {
            trade_strings({}, {}, all_peers(), all);
            return all;
        }
        trade_strings(bytes, {root.value()}, {}, all);
        return {};
    }

    std::vector<std::string> all_gather(std::string_view bytes, Milliseconds timeout) override {
        begin("all_gather", timeout);
        return all_gather_begun(bytes);
    }

    void barrier(Milliseconds timeout) override {
        begin("barrier", timeout);
        all_gather_begun({});
    }

  private:
    void connect(Rendezvous& rendezvous) {
        gloo::transport::tcp::attr attributes(options_.address.c_str());
        device_ = gloo::transport::tcp::CreateDevice(attributes);
        context_ = device_->createContext(rank_, size_);
        context_->setTimeout(std::max(Milliseconds(1), options_.connect_timeout / kGlooConnectFactor));
        // One listening address per peer, in rank order; all of the same length but one's own, which is empty.
        std::string addresses;
        for (int peer = 0; peer < size_; ++peer) {
            if (peer == rank_) continue;
            const std::vector<char> bytes = context_->createPair(peer)->address().bytes();
            addresses.append(bytes.begin(), bytes.end());
        }
        const auto all = rendezvous.exchange(options_.group, addresses, options_.connect_timeout);
        for (int peer = 0; peer < size_; ++peer) {
            if (peer == rank_) continue;
            const std::size_t length = all[peer].size() / (size_ - 1);
            const int position = rank_ < peer ? rank_ : rank_ - 1;  // among the peers of `peer`
            const std::string address = all[peer].substr(length * position, length);
            context_->getPair(peer)->connect({address.begin(), address.end()});
        }

        lifelines_ = std::make_unique<Lifelines>(
            LifelineOptions{options_.group, options_.rank, size_, options_.address, options_.connect_timeout},
            rendezvous, [this](const Departure& departure) { notice(departure); });
    }

    // From the lifelines' thread.
    void notice(const Departure& departure) {
        std::lock_guard lock(mutex_);
        if (departure.done) {
            done_peer_ = departure.peer;
            return;
        }
        lost_ = departure;
        if (awaited_ != nullptr) {
            awaited_->abortWaitRecv();
            awaited_->abortWaitSend();
        }
        lost_changed_.notify_all();
    }

    void begin(const char* operation, Milliseconds timeout) {
        operation_ = operation;
        timeout_ = timeout;
        deadline_ = clock_.after(timeout);
        ++slot_;
        std::unique_lock lock(mutex_);
        if (!failure_.empty()) throw CommError(failure_);
        if (!lost_ && !done_peer_) return;
        const std::int32_t peer = lost_ ? lost_->peer : *done_peer_;
        lock.unlock();
        fail(peer, "it has left the group");
    }

    Milliseconds time_left() const {
        return std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(deadline_ - clock_.now()));
    }

    UnboundBuffer buffer_over(void* data, std::int64_t bytes) {
        return context_->createUnboundBuffer(data, static_cast<std::size_t>(bytes));
    }

    // Ends the use of the group. The peers are told and the connections closed, so that they learn of it now and
    // not at their deadlines.
    [[noreturn]] void fail(int peer, const std::string& reason) {
        std::unique_lock lock(mutex_);
        const bool late = timeout_.count() > 0 && clock_.now() >= deadline_ && !lost_;
        // Gloo may notice a broken connection before the lifeline does; only the lifeline knows whose fault it is.
        if (!late) lost_changed_.wait_for(lock, kNoticeTimeout, [&] { return lost_.has_value(); });
        const std::string where =
            fmt::format("[island] {} in group {}: rank {}", operation_, options_.group, rank_);
        if (late) {
            failure_ = fmt::format("{} waited {} ms for rank {}; raise timeouts.island_ms if it is only slow",
                                   where, timeout_.count(), peer);
        } else if (lost_ && !lost_->why.empty()) {
            failure_ = fmt::format("{} stops because rank {} gave up: {}", where, lost_->peer, lost_->why);
        } else {
            failure_ = fmt::format("{} lost rank {} ({}); its own log says why", where,
                                   lost_ ? lost_->peer : peer, reason);
        }
        lock.unlock();
        lifelines_->give_up(failure_);
        for (const int other : all_peers()) context_->getPair(other)->close();
        throw CommError(failure_);
    }

    void send(UnboundBuffer& buffer, int peer, RingChunk bytes) {
        try {
            buffer->send(peer, slot_, bytes.begin, bytes.size());
        } catch (const gloo::Exception& error) {
            fail(peer, error.what());
        }
    }
    void receive(UnboundBuffer& buffer, int peer, RingChunk bytes) {
        try {
            buffer->recv(peer, slot_, bytes.begin, bytes.size());
        } catch (const gloo::Exception& error) {
            fail(peer, error.what());
        }
    }
    void wait_sent(UnboundBuffer& buffer, int peer) {
        wait(buffer, peer, [&](Milliseconds timeout) { return buffer->waitSend(nullptr, timeout); });
    }
    void wait_received(UnboundBuffer& buffer, int peer) {
        wait(buffer, peer, [&](Milliseconds timeout) { return buffer->waitRecv(nullptr, timeout); });
    }

    // A wait that the lifelines can end.
    template <class Wait>
    void wait(UnboundBuffer& buffer, int peer, Wait wait_for) {
        {
            std::lock_guard lock(mutex_);
            if (lost_) {
                buffer->abortWaitRecv();
                buffer->abortWaitSend();
            }
            awaited_ = buffer.get();
        }
        bool came = false;
        std::string reason = "its connection is closed";
        try {
            came = wait_for(time_left());
        } catch (const gloo::Exception& error) {
            reason = error.what();
        }
        {
            std::lock_guard lock(mutex_);
            awaited_ = nullptr;
        }
        if (!came) fail(peer, reason);
    }

    std::vector<std::string> all_gather_begun(std::string_view bytes) {
        std::vector<std::string> all(size_);
        all[rank_] = bytes;
        trade_strings(bytes, all_peers(), all_peers(), all);
        return all;
    }

    std::vector<int> all_peers() const {
        std::vector<int> peers;
        for (int peer = 0; peer < size_; ++peer) {
            if (peer != rank_) peers.push_back(peer);
        }
        return peers;
    }

    // Sends length, then bytes, to each of `to` and receives the same from each of `from` into all[peer]. Gloo's
    // sends end only when the other side receives, so they are waited for last.
    void trade_strings(std::string_view bytes, const std::vector<int>& to, const std::vector<int>& from,
                       std::vector<std::string>& all) {
        std::string body(bytes);
        std::uint64_t length = body.size();
        UnboundBuffer header_out = buffer_over(&length, sizeof length);
        UnboundBuffer body_out = buffer_over(body.data(), static_cast<std::int64_t>(length));
        for (const int peer : to) {
            send(header_out, peer, {0, sizeof length});
            if (length > 0) send(body_out, peer, {0, static_cast<std::int64_t>(length)});
        }
        for (const int peer : from) {
            std::uint64_t coming = 0;
            UnboundBuffer header = buffer_over(&coming, sizeof coming);
            receive(header, peer, {0, sizeof coming});
            wait_received(header, peer);
            all[peer].resize(coming);
            if (coming == 0) continue;
            UnboundBuffer body_in = buffer_over(all[peer].data(), static_cast<std::int64_t>(coming));
            receive(body_in, peer, {0, static_cast<std::int64_t>(coming)});
            wait_received(body_in, peer);
        }
        for (const int peer : to) {
            wait_sent(header_out, peer);
            if (length > 0) wait_sent(body_out, peer);
        }
    }

    int right() const { return ring_modulo(rank_ + 1, size_); }
    int left() const { return ring_modulo(rank_ - 1, size_); }

    // The transfers of one phase in order. All chunks are cut into the same number of segments, so that both
    // ends of a connection agree on every transfer.
    template <class SentChunk>
    std::vector<RingTransfer> transfers(BufferView values, SentChunk sent_chunk) const {
        const std::int64_t width = size_bytes(values.dtype);
        const std::int64_t longest = (values.count + size_ - 1) / size_ * width;
        const std::int64_t segments = (longest + kSegmentBytes - 1) / kSegmentBytes;
        const auto segment_of = [&](std::int32_t chunk, std::int64_t segment) {
            const RingChunk range = ring_chunk(values.count, size_, chunk);
            return RingChunk{(range.begin + range.size() * segment / segments) * width,
                             (range.begin + range.size() * (segment + 1) / segments) * width};
        };
        std::vector<RingTransfer> all;
        for (std::int32_t step = 0; step + 1 < size_; ++step) {
            for (std::int64_t segment = 0; segment < segments; ++segment) {
                all.push_back({segment_of(sent_chunk(rank_, step, size_), segment),
                               segment_of(sent_chunk(left(), step, size_), segment)});
            }
        }
        return all;
    }

    // Chunks of fewer elements than ranks may be empty; Gloo can't move nothing, and both ends know it.
    void send_right(UnboundBuffer& buffer, RingChunk bytes) {
        if (bytes.size() > 0) send(buffer, right(), bytes);
    }
    void wait_sent_right(UnboundBuffer& buffer, RingChunk bytes) {
        if (bytes.size() > 0) wait_sent(buffer, right());
    }
    void receive_left(UnboundBuffer& buffer, RingChunk bytes) {
        if (bytes.size() > 0) receive(buffer, left(), bytes);
    }
    void wait_received_left(UnboundBuffer& buffer, RingChunk bytes) {
        if (bytes.size() > 0) wait_received(buffer, left());
    }

    void reduce_around_the_ring(BufferView values) {
        const auto plan = transfers(values, ring_sent_chunk);
        auto* data = static_cast<std::byte*>(values.data);
        UnboundBuffer buffer = buffer_over(values.data, values.bytes());
        const std::int64_t half = kSegmentBytes + size_bytes(values.dtype);
        staging_.resize(static_cast<std::size_t>(2 * half));
        UnboundBuffer staging[2] = {buffer_over(staging_.data(), half),
                                    buffer_over(staging_.data() + half, half)};
        const auto in_staging = [&](std::size_t i) { return RingChunk{0, plan[i].received.size()}; };
        receive_left(staging[0], in_staging(0));
        for (std::size_t i = 0; i < plan.size(); ++i) {
            // What is sent now was summed at least one transfer ago; the next receive is under way meanwhile.
            send_right(buffer, plan[i].sent);
            if (i + 1 < plan.size()) receive_left(staging[(i + 1) % 2], in_staging(i + 1));
            wait_received_left(staging[i % 2], in_staging(i));
            const RingChunk bytes = plan[i].received;
            const std::byte* came = staging_.data() + static_cast<std::int64_t>(i % 2) * half;
            if (values.dtype == DType::f64) {
                add_into<double>(data + bytes.begin, came, bytes.size());
            } else {
                add_into<float>(data + bytes.begin, came, bytes.size());
            }
            wait_sent_right(buffer, plan[i].sent);
        }
    }

    void pass_around_the_ring(BufferView values) {
        const auto plan = transfers(values, ring_passed_chunk);
        const std::size_t per_step = plan.size() / static_cast<std::size_t>(size_ - 1);
        UnboundBuffer out = buffer_over(values.data, values.bytes());
        UnboundBuffer in = buffer_over(values.data, values.bytes());
        ++slot_;
        for (const RingTransfer& transfer : plan) receive_left(in, transfer.received);
        for (std::size_t i = 0; i < plan.size(); ++i) {
            // What came a step ago goes on now.
            if (i >= per_step) wait_received_left(in, plan[i - per_step].received);
            send_right(out, plan[i].sent);
        }
        for (std::size_t i = plan.size() - per_step; i < plan.size(); ++i) {
            wait_received_left(in, plan[i].received);
        }
        for (const RingTransfer& transfer : plan) wait_sent_right(out, transfer.sent);
    }

    GlooOptions options_;
    int rank_;
    int size_;
    SystemClock clock_;
    std::shared_ptr<gloo::transport::Device> device_;    // shared with Gloo's own objects
    std::shared_ptr<gloo::transport::Context> context_;  // likewise
    std::vector<std::byte> staging_;
    std::string failure_;
    // What the lifelines' thread tells.
    std::mutex mutex_;
    std::condition_variable lost_changed_;
    std::optional<Departure> lost_;
    std::optional<std::int32_t> done_peer_;
    gloo::transport::UnboundBuffer* awaited_ = nullptr;
    // Of the call in progress.
    const char* operation_ = "";
    Milliseconds timeout_{0};
    Deadline deadline_;
    std::uint64_t slot_ = 0;  // Gloo's name of a transfer: the same on both ends, new for each call
    std::unique_ptr<Lifelines> lifelines_;  // last, so that its thread ends first
};

}  // namespace

std::unique_ptr<IslandCollective> make_gloo_collective(const GlooOptions& options, Rendezvous& rendezvous) {
    // Gloo writes to sockets without MSG_NOSIGNAL: a lost peer must be an error here, not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    return std::make_unique<GlooCollective>(options, rendezvous);
}

std::string gloo_library_path() {
    Dl_info info{};
    const auto function = reinterpret_cast<const void*>(&gloo::transport::tcp::CreateDevice);
    ATOLL_CHECK(::dladdr(function, &info) != 0 && info.dli_fname != nullptr);
    return info.dli_fname;
}

}  // namespace atl
