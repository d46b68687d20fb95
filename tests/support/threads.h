// Runs one function per member on threads of its own and hands an exception of any of them to the caller.
#pragma once

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace atl::test {

// body(rank) for rank 0 … count-1, all at once; returns when all have ended. The exception of the lowest rank
// that threw is thrown again.
template <class Body>
void run_ranks(std::int32_t count, Body body) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
    {
        std::vector<std::jthread> threads;
        for (std::int32_t rank = 0; rank < count; ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    body(rank);
                } catch (...) {
                    errors[static_cast<std::size_t>(rank)] = std::current_exception();
                }
            });
        }
    }
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

}  // namespace atl::test
