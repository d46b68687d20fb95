#include "exchange/site_exchange.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace atl {

namespace {

// How long the thread may sleep in the transport without looking at the coordinator's messages and the worker's.
constexpr std::chrono::microseconds kNap{250};
constexpr Milliseconds kFetchSlice{200};
constexpr std::chrono::microseconds kLongNap{5000};  // while nobody waits for anything

}  // namespace

SiteExchange::SiteExchange(ExchangeOptions options, SiteTransport& transport, ControlLink& control,
                           const Clock& clock, Log log)
    : clock_(clock),
      transport_(transport),
      driver_(std::move(options), transport, control, clock, std::move(log)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SiteExchange::~SiteExchange() = default;

std::optional<WorkerOrder> SiteExchange::next_order(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return !orders_.empty() || failure_; });
    throw_if_failed();
    if (orders_.empty()) return {};
    WorkerOrder order = std::move(orders_.front());
    orders_.pop_front();
    return order;
}

void SiteExchange::tell(SiteEvent event) {
    post(std::move(event));
}

void SiteExchange::contribute(Contribution contribution) {
    post(std::move(contribution));
}

std::shared_ptr<std::vector<float>> SiteExchange::buffer(std::int64_t elements) {
    const auto size = static_cast<std::size_t>(elements);
    const auto free = std::ranges::find_if(
        buffers_, [&](const auto& buffer) { return buffer.use_count() == 1 && buffer->size() == size; });
    if (free != buffers_.end()) return *free;
    return buffers_.emplace_back(std::make_shared<std::vector<float>>(size));
}

void SiteExchange::publish_state(const StateVersion& version, std::vector<std::span<const float>> parts) {
    driver_.published_state().publish(version, std::move(parts));
}

void SiteExchange::withdraw_state() {
    driver_.published_state().withdraw();
}

FetchedState SiteExchange::fetch_state(StateKind kind, std::vector<SiteId> donors,
                                       std::vector<std::span<float>> parts, Deadline deadline,
                                       const std::function<void()>& meanwhile) {
    std::optional<FetchedState> result;
    FetchRequest request{std::move(donors), std::move(parts), deadline, {}, kind};
    request.done = [&](std::optional<StateVersion> version, const std::string& problem) {
        const std::scoped_lock lock(mutex_);
        result = {std::move(version), problem};
        changed_.notify_all();
    };
    post(std::move(request));
    std::unique_lock lock(mutex_);
    // The fetcher keeps the deadline.
    while (!changed_.wait_for(lock, kFetchSlice, [&] { return result.has_value() || failure_; })) {
        lock.unlock();
        if (meanwhile) meanwhile();
        lock.lock();
    }
    throw_if_failed();
    return *std::move(result);
}

RoundTraffic SiteExchange::last_traffic() const {
    const std::scoped_lock lock(mutex_);
    return traffic_;
}

void SiteExchange::run(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "exchange");
    try {
        while (!stop.stop_requested()) {
            if (turn()) continue;
            const bool hurry = driver_.phase() == Phase::exchanging || driver_.phase() == Phase::holding;
            if (auto event = transport_.poll(clock_.now() + (hurry ? kNap : kLongNap)))
                driver_.take(std::move(*event));
        }
    } catch (...) {
        const std::scoped_lock lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
    }
}

bool SiteExchange::turn() {
    std::deque<Message> messages;
    {
        const std::scoped_lock lock(mutex_);
        messages = std::exchange(inbox_, {});
    }
    for (Message& message : messages) {
        if (auto* event = std::get_if<SiteEvent>(&message)) driver_.tell(*event);
        if (auto* contribution = std::get_if<Contribution>(&message))
            driver_.contribute(std::move(*contribution));
        if (auto* request = std::get_if<FetchRequest>(&message)) driver_.fetch_state(std::move(*request));
    }
    const bool busy = driver_.step();
    bool ordered = false;
    while (auto order = driver_.take_order()) {
        const std::scoped_lock lock(mutex_);
        traffic_ = driver_.last_traffic();
        orders_.push_back(std::move(*order));
        ordered = true;
    }
    if (ordered) changed_.notify_all();
    return busy || !messages.empty();
}

void SiteExchange::post(Message message) {
    {
        const std::scoped_lock lock(mutex_);
        throw_if_failed();
        inbox_.push_back(std::move(message));
    }
    transport_.interrupt();
}

void SiteExchange::throw_if_failed() const {
    if (failure_) std::rethrow_exception(failure_);
}

}  // namespace atl
