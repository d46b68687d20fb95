#include "comm/island/gloo_posts.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "core/error.h"

namespace atl {

GlooPosts::GlooPosts(std::shared_ptr<gloo::transport::tcp::Device> device, OnFailure on_failure)
    : device_(std::move(device)),
      on_failure_(std::move(on_failure)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw CommError("[island] no eventfd: " + system_reason());
    device_->registerDescriptor(wake_.get(), EPOLLIN, this);
}

GlooPosts::~GlooPosts() {
    device_->unregisterDescriptor(wake_.get(), this);
}

void GlooPosts::add(const GlooPost& post) {
    std::lock_guard lock(mutex_);
    if (!stopped_) waiting_.push_back(post);
}

void GlooPosts::flush() {
    {
        std::lock_guard lock(mutex_);
        if (waiting_.empty()) return;
    }
    ::eventfd_write(wake_.get(), 1);
}

void GlooPosts::forget(gloo::transport::UnboundBuffer* buffer) {
    std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const GlooPost& post) { return post.buffer == buffer; });
}

void GlooPosts::stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
}

void GlooPosts::handleEvents(int /*events*/) {
    eventfd_t count = 0;
    ::eventfd_read(wake_.get(), &count);
    while (true) {
        std::lock_guard lock(mutex_);
        if (waiting_.empty()) return;
        const GlooPost post = waiting_.front();
        waiting_.pop_front();
        hand_over(post);
    }
}

void GlooPosts::hand_over(const GlooPost& post) {
    const auto begin = static_cast<std::size_t>(post.bytes.begin);
    const auto size = static_cast<std::size_t>(post.bytes.size());
    try {
        if (post.kind == GlooPost::Kind::send) {
            post.buffer->send(post.peer, post.slot, begin, size);
        } else {
            post.buffer->recv(post.peer, post.slot, begin, size);
        }
    } catch (const std::exception& error) {  // whatever it is, this is Gloo's thread
        on_failure_(post.peer, error.what());
    }
}

}  // namespace atl
