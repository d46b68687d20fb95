#include "comm/island/gloo_mesh.h"

#include <dlfcn.h>
#include <gloo/common/error.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <csignal>

#include "core/check.h"
#include "core/error.h"
#include "core/short_time_slice.h"

namespace atl {
namespace {

// Gloo waits five of its timeouts for a connection (gloo/transport/tcp/pair.h).
constexpr int kGlooConnectFactor = 5;
constexpr Milliseconds kNoticeTimeout{200};  // between Gloo's notice of a lost connection and the lifeline's

void abort_waits(gloo::transport::UnboundBuffer& buffer) {
    buffer.abortWaitRecv();
    buffer.abortWaitSend();
}

}  // namespace

GlooMesh::GlooMesh(const GlooOptions& options, Rendezvous& rendezvous)
    : options_(options), rank_(options.rank.value()), size_(options.size) {
    ATOLL_CHECK(rank_ >= 0 && rank_ < size_, "rank {} of {}", rank_, size_);
    if (size_ == 1) return;
    // Gloo writes to sockets without MSG_NOSIGNAL: a lost peer must be an error here, not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        connect(rendezvous);
    } catch (const gloo::Exception& error) {
        throw CommError(
            fmt::format("[island] group {}: rank {} can't connect to all {} ranks within {} ms: {}",
                        options_.group, rank_, size_, options_.connect_timeout.count(), error.what()));
    }
}

void GlooMesh::connect(Rendezvous& rendezvous) {
    gloo::transport::tcp::attr attributes(options_.address.c_str());
    const ShortTimeSlice prompt;  // of Gloo's thread and the lifelines'
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    posts_ = std::make_unique<GlooPosts>(
        std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device_),
        [this](int peer, const std::string& reason) { notice_failed_post(peer, reason); });
    context_ = device_->createContext(rank_, size_);
    context_->setTimeout(std::max(Milliseconds(1), options_.connect_timeout / kGlooConnectFactor));
    // One listening address per peer, in rank order; all of the same length.
    std::string addresses;
    for (const int peer : peers()) {
        const std::vector<char> bytes = context_->createPair(peer)->address().bytes();
        addresses.append(bytes.begin(), bytes.end());
    }
    const auto all = rendezvous.exchange(options_.group, addresses, options_.connect_timeout);
    for (const int peer : peers()) {
        const std::size_t length = all[peer].size() / (size_ - 1);
        const int position = rank_ < peer ? rank_ : rank_ - 1;  // among the peers of `peer`
        const std::string address = all[peer].substr(length * position, length);
        context_->getPair(peer)->connect({address.begin(), address.end()});
    }

    lifelines_ = std::make_unique<Lifelines>(
        LifelineOptions{options_.group, options_.rank, size_, options_.address, options_.connect_timeout},
        rendezvous, [this](const Departure& departure) { notice(departure); });
}

std::vector<int> GlooMesh::peers() const {
    std::vector<int> peers;
    for (int peer = 0; peer < size_; ++peer) {
        if (peer != rank_) peers.push_back(peer);
    }
    return peers;
}

// From the lifelines' thread.
void GlooMesh::notice(const Departure& departure) {
    std::lock_guard lock(mutex_);
    if (departure.done) {
        done_peer_ = departure.peer;
        return;
    }
    lost_ = departure;
    for (auto* buffer : awaited_) abort_waits(*buffer);
    lost_changed_.notify_all();
}

// From Gloo's thread.
void GlooMesh::notice_failed_post(int peer, const std::string& reason) {
    std::lock_guard lock(mutex_);
    if (failed_post_.empty()) failed_post_ = fmt::format("a transfer with rank {} can't begin: {}", peer, reason);
    for (auto* buffer : awaited_) abort_waits(*buffer);
}

MeshCall GlooMesh::begin(const char* operation, Milliseconds timeout, std::uint64_t slot) {
    const MeshCall call{operation, timeout, clock_.after(timeout), slot};
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw CommError(failure_);
    if (!lost_) return call;
    const std::int32_t peer = lost_->peer;
    lock.unlock();
    fail(call, peer, "it has left the group");
}

MeshCall GlooMesh::begin_with_all(const char* operation, Milliseconds timeout) {
    const MeshCall call = begin(operation, timeout, ++calls_with_all_);
    std::unique_lock lock(mutex_);
    if (!done_peer_) return call;
    const std::int32_t peer = *done_peer_;
    lock.unlock();
    fail(call, peer, "it has left the group");
}

void ForgetPosts::operator()(gloo::transport::UnboundBuffer* buffer) const {
    posts->forget(buffer);
    delete buffer;
}

UnboundBuffer GlooMesh::buffer_over(void* data, std::int64_t bytes) {
    return {context_->createUnboundBuffer(data, static_cast<std::size_t>(bytes)).release(), ForgetPosts{posts_.get()}};
}

void GlooMesh::send(const MeshCall& call, UnboundBuffer& buffer, int peer, RingChunk bytes) {
    posts_->add({GlooPost::Kind::send, buffer.get(), peer, call.slot, bytes});
}

void GlooMesh::receive(const MeshCall& call, UnboundBuffer& buffer, int peer, RingChunk bytes) {
    posts_->add({GlooPost::Kind::receive, buffer.get(), peer, call.slot, bytes});
}

void GlooMesh::flush() {
    posts_->flush();
}

void GlooMesh::wait_sent(const MeshCall& call, UnboundBuffer& buffer, int peer) {
    wait(call, buffer, peer, [&](Milliseconds timeout) { return buffer->waitSend(nullptr, timeout); });
}

void GlooMesh::wait_received(const MeshCall& call, UnboundBuffer& buffer, int peer) {
    wait(call, buffer, peer, [&](Milliseconds timeout) { return buffer->waitRecv(nullptr, timeout); });
}

// A wait that the lifelines, or another thread's failure, can end.
template <class Wait>
void GlooMesh::wait(const MeshCall& call, UnboundBuffer& buffer, int peer, Wait wait_for) {
    {
        std::lock_guard lock(mutex_);
        if (lost_ || !failure_.empty() || !failed_post_.empty()) abort_waits(*buffer);
        awaited_.insert(buffer.get());
    }
    posts_->flush();
    bool came = false;
    std::string reason = "its connection is closed";
    try {
        const auto left = std::chrono::ceil<Milliseconds>(call.deadline - clock_.now());
        came = wait_for(std::max(Milliseconds(1), left));
    } catch (const std::exception& error) {  // Gloo's, or the system's
        reason = error.what();
    }
    {
        std::lock_guard lock(mutex_);
        awaited_.erase(buffer.get());
        if (!failed_post_.empty()) reason = failed_post_;
    }
    if (!came) fail(call, peer, reason);
}

void GlooMesh::fail(const MeshCall& call, int peer, const std::string& reason) {
    std::unique_lock lock(mutex_);
    const bool late = call.timeout.count() > 0 && clock_.now() >= call.deadline && !lost_;
    // Gloo may notice a broken connection before the lifeline does; only the lifeline knows whose fault it is.
    if (!late) {
        lost_changed_.wait_for(lock, kNoticeTimeout, [&] { return lost_.has_value() || !failure_.empty(); });
    }
    if (!failure_.empty()) throw CommError(failure_);
    const std::string where =
        fmt::format("[island] {} in group {}: rank {}", call.operation, options_.group, rank_);
    std::string failure;
    if (late) {
        failure = fmt::format("{} waited {} ms for rank {}; raise timeouts.island_ms if it is only slow",
                              where, call.timeout.count(), peer);
    } else if (lost_ && !lost_->why.empty()) {
        failure = fmt::format("{} stops because rank {} gave up: {}", where, lost_->peer, lost_->why);
    } else {
        failure = fmt::format("{} lost rank {} ({}); its own log says why", where, lost_ ? lost_->peer : peer,
                              reason);
    }
    lock.unlock();
    end(failure);
    lock.lock();
    throw CommError(failure_);
}

void GlooMesh::give_up(const std::string& why) {
    if (size_ > 1) end(why);
}

// The peers are told and the connections closed, so that they learn of it now and not at their deadlines.
void GlooMesh::end(std::string failure) {
    {
        std::lock_guard lock(mutex_);
        if (!failure_.empty()) return;
        failure_ = failure;
        for (auto* buffer : awaited_) abort_waits(*buffer);
        lost_changed_.notify_all();
    }
    lifelines_->give_up(failure);
    if (posts_) posts_->stop();  // a connection can't be closed while Gloo's thread begins a transfer on it
    for (const int peer : peers()) context_->getPair(peer)->close();
}

std::string gloo_library_path() {
    Dl_info info{};
    const auto function = reinterpret_cast<const void*>(&gloo::transport::tcp::CreateDevice);
    ATOLL_CHECK(::dladdr(function, &info) != 0 && info.dli_fname != nullptr);
    return info.dli_fname;
}

}  // namespace atl
