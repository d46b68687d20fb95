// Random programs for property tests, as a pure function of a seed.
#pragma once

#include "core/random.h"
#include "program/program.h"

namespace atl::test {

class RandomChoice {
  public:
    explicit RandomChoice(std::uint64_t seed) : random_(seed, "choices") {}

    std::int64_t below(std::int64_t bound) {
        return static_cast<std::int64_t>(random_.below(next_++, static_cast<std::uint64_t>(bound)));
    }
    bool one_in(std::int64_t n) { return below(n) == 0; }
    double number() { return random_.normal(next_++) * (one_in(2) ? 1e-9 : 1e12); }
    template <class T>
    const T& any(const std::vector<T>& items) {
        return items[static_cast<std::size_t>(below(std::ssize(items)))];
    }

  private:
    RandomStream random_;
    std::uint64_t next_ = 0;
};

// Any fields at all, whether or not they make sense together: for the text form.
Program arbitrary_program(std::uint64_t seed);

// A program that passes the checker: one rank, ops on several resources that read random earlier values, some in
// place, some with scratch.
Program legal_program(std::uint64_t seed, std::int32_t ops);

}  // namespace atl::test
