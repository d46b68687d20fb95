#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "comm/island/local_collective.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

// The messages from one member to another.
struct Channel {
    std::deque<BufferView> sends;  // posted, without a receive yet
    std::deque<BufferView> receives;
    std::int64_t delivered = 0;
    std::int64_t sends_awaited = 0;  // whose wait has returned
    std::int64_t receives_awaited = 0;
};

// What the members share.
class PostOffice {
  public:
    PostOffice(std::int32_t size, std::string group)
        : size(size), group(std::move(group)), channels_(static_cast<std::size_t>(size * size)) {}

    void post(std::int32_t from, std::int32_t to, const BufferView& values,
              std::deque<BufferView> Channel::*kind) {
        std::lock_guard lock(mutex_);
        throw_if_closed();
        Channel& channel = channel_of(from, to);
        (channel.*kind).push_back(values);
        if (channel.sends.empty() || channel.receives.empty()) return;
        const BufferView& source = channel.sends.front();
        const BufferView& destination = channel.receives.front();
        ATOLL_CHECK_EQ(source.bytes(), destination.bytes(), "message {} from rank {} to rank {}",
                       channel.delivered, from, to);
        std::copy_n(static_cast<const std::byte*>(source.data), source.bytes(),
                    static_cast<std::byte*>(destination.data));
        channel.sends.pop_front();
        channel.receives.pop_front();
        ++channel.delivered;
        delivered_.notify_all();
    }

    // Until one more message of the channel is delivered than its kind's waits have returned for.
    void wait(std::int32_t from, std::int32_t to, std::int64_t Channel::*awaited, const std::string& what,
              Milliseconds timeout) {
        std::unique_lock lock(mutex_);
        Channel& channel = channel_of(from, to);
        const auto came = [&] { return channel.delivered > channel.*awaited; };
        if (!delivered_.wait_for(lock, timeout, [&] { return came() || !failure_.empty(); })) {
            close_locked(
                fmt::format("[island] {} in group {}: waited {} ms; raise the timeout if it is only slow",
                            what, group, timeout.count()));
        }
        if (!came()) throw_if_closed();
        ++(channel.*awaited);
    }

    void close(const std::string& why) {
        std::lock_guard lock(mutex_);
        close_locked(why);
    }

    const std::int32_t size;
    const std::string group;

  private:
    Channel& channel_of(std::int32_t from, std::int32_t to) {
        ATOLL_CHECK(from >= 0 && from < size && to >= 0 && to < size && from != to,
                    "from rank {} to rank {} of {}", from, to, size);
        return channels_[static_cast<std::size_t>(from * size + to)];
    }
    void close_locked(std::string why) {
        if (failure_.empty()) failure_ = std::move(why);
        delivered_.notify_all();
    }
    void throw_if_closed() const {
        if (!failure_.empty()) throw CommError(failure_);
    }

    std::mutex mutex_;
    std::condition_variable delivered_;
    std::vector<Channel> channels_;
    std::string failure_;
};

class LocalPointToPoint final : public PointToPoint {
  public:
    LocalPointToPoint(std::shared_ptr<PostOffice> office, std::int32_t rank)
        : office_(std::move(office)), rank_(rank) {}
    ~LocalPointToPoint() override {
        office_->close(fmt::format("[island] group {}: rank {} has left", office_->group, rank_));
    }

    Rank rank() const override { return Rank(rank_); }
    std::int32_t size() const override { return office_->size; }

    void post_send(BufferView values, Rank peer) override {
        office_->post(rank_, peer.value(), values, &Channel::sends);
    }
    void post_receive(BufferView values, Rank peer) override {
        office_->post(peer.value(), rank_, values, &Channel::receives);
    }
    void wait_send(Rank peer, Milliseconds timeout) override {
        office_->wait(rank_, peer.value(), &Channel::sends_awaited,
                      fmt::format("send from rank {} to rank {}", rank_, peer), timeout);
    }
    void wait_receive(Rank peer, Milliseconds timeout) override {
        office_->wait(peer.value(), rank_, &Channel::receives_awaited,
                      fmt::format("receive at rank {} from rank {}", rank_, peer), timeout);
    }
    void give_up(const std::string& why) override {
        office_->close(
            fmt::format("[island] group {}: stops because rank {} gave up: {}", office_->group, rank_, why));
    }

  private:
    std::shared_ptr<PostOffice> office_;  // shared by the members, who end in any order
    std::int32_t rank_;
};

}  // namespace

std::vector<std::unique_ptr<PointToPoint>> make_local_point_to_point(std::int32_t size, std::string group) {
    ATOLL_CHECK(size >= 1, "{} members", size);
    auto office = std::make_shared<PostOffice>(size, std::move(group));
    std::vector<std::unique_ptr<PointToPoint>> members;
    for (std::int32_t rank = 0; rank < size; ++rank) {
        members.push_back(std::make_unique<LocalPointToPoint>(office, rank));
    }
    return members;
}

}  // namespace atl
