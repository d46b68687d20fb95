// What a donor gives a joiner of its inner optimizer: the moments of its newest checkpoint. They are read from disk by a
// thread of their own when somebody asks, and let go of when nobody has for a while.
//
// Not thread-safe: the exchange's thread; destruction waits for a read under way. Errors: where there are none to give, the
// index says zero elements. Memory: the moments in fp32, while they are asked for.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "exchange/state_transfer.h"

namespace atl {

struct KeptMoments {
    StateVersion version;
    std::vector<std::vector<float>> parts;
};

// From the newest checkpoint; nothing: there is none. Called from a thread of its own; throws nothing.
using LoadMoments = std::function<std::optional<KeptMoments>()>;

class MomentsDonor {
  public:
    explicit MomentsDonor(LoadMoments load) : load_(std::move(load)) {}

    // The answers to a frame of kind state_request; none while they are being read: joiners ask again.
    std::vector<Frame> answer(const Frame& request, TimePoint now);
    void step(TimePoint now);
    std::int64_t bytes() const;

  private:
    void take(std::optional<KeptMoments> loaded);

    LoadMoments load_;
    std::future<std::optional<KeptMoments>> loading_;
    PublishedState published_{StateKind::inner_moments};
    std::optional<KeptMoments> kept_;
    bool is_published_ = false;
    TimePoint last_asked_{};
};

}  // namespace atl
