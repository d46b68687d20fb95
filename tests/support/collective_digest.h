// Everything that a group can be asked to do with numbers, on random values, as one digest: for comparing
// implementations and runs bit by bit.
#pragma once

#include <string>
#include <vector>

#include "comm/island/collective.h"
#include "comm/island/point_to_point.h"
#include "comm/island/ring.h"
#include "core/hash.h"
#include "core/random.h"

namespace atl::test {

template <class T>
std::vector<T> random_values(std::int32_t rank, std::int64_t count) {
    const RandomStream random(11, static_cast<std::uint64_t>(rank));
    std::vector<T> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(random.normal(i));
    return values;
}

template <class T>
void update(Blake2b& digest, const std::vector<T>& values) {
    digest.update(std::as_bytes(std::span(values)));
}

template <class T>
void digest_reductions(IslandCollective& group, const std::vector<double>& values, std::int64_t rows,
                       std::int64_t width, Milliseconds timeout, Blake2b& digest) {
    const std::int32_t rank = group.rank().value();
    const std::vector<T> own(values.begin(), values.begin() + rows * width);
    std::vector<T> sum = own;
    std::vector<T> maximum = own;
    group.all_reduce(view_of(sum), timeout);
    group.all_reduce_max(view_of(maximum), timeout);
    update(digest, sum);
    update(digest, maximum);

    std::vector<T> whole = own;
    std::vector<T> piece(static_cast<std::size_t>(ring_chunk(rows, group.size(), rank).size() * width));
    group.reduce_scatter_rows(view_of(whole), view_of(piece), rows, timeout);
    update(digest, whole == own ? std::vector<T>{} : whole);  // not touched
    group.all_gather_rows(view_of(piece), view_of(whole), rows, timeout);
    update(digest, whole);
}

// The same on every member.
inline std::string digest_of_collectives(IslandCollective& group, Milliseconds timeout) {
    Blake2b digest;
    // No rows, fewer rows than ranks, rows that don't divide, rows wider than a segment, more than a few segments.
    const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
        {0, 8}, {1, 1}, {1, 3}, {2, 5}, {1'001, 1}, {5, 40'003}, {200'001, 1}, {515, 257}};
    const auto values = random_values<double>(group.rank().value(), 200'015);
    for (const auto& [rows, width] : shapes) {
        digest_reductions<float>(group, values, rows, width, timeout, digest);
        digest_reductions<double>(group, values, rows, width, timeout, digest);
    }
    std::vector<float> copied(1'000, static_cast<float>(group.rank().value()));
    group.broadcast(view_of(copied), Rank(group.size() - 1), timeout);
    update(digest, copied);
    const std::string mine(static_cast<std::size_t>(group.rank().value()) * 7, 'a');
    for (const std::string& other : group.all_gather(mine, timeout))
        digest.update(std::as_bytes(std::span(other)));
    const auto gathered = group.gather(mine, Rank(0), timeout);
    const bool right_count = std::ssize(gathered) == (group.rank() == Rank(0) ? group.size() : 0);
    group.barrier(timeout);
    return right_count ? digest.hex() : "gather returned the wrong count";
}

// Everybody posts everything, in the opposite order of what it waits for, and then waits. What a member got from all
// others.
inline std::string digest_of_messages(PointToPoint& office, Milliseconds timeout) {
    const std::vector<std::int64_t> counts = {1, 0, 1'000, 300'007};
    const std::int32_t me = office.rank().value();
    std::vector<std::vector<std::vector<float>>> sent(office.size());
    std::vector<std::vector<std::vector<float>>> received(office.size());
    for (std::int32_t peer = office.size() - 1; peer >= 0; --peer) {
        if (peer == me) continue;
        for (const std::int64_t count : counts) {
            sent[peer].push_back(random_values<float>(100 * me + peer, count));
            received[peer].emplace_back(static_cast<std::size_t>(count));
        }
        for (auto& message : sent[peer]) office.post_send(view_of(message), Rank(peer));
        for (auto& message : received[peer]) office.post_receive(view_of(message), Rank(peer));
    }
    Blake2b digest;
    for (std::int32_t peer = 0; peer < office.size(); ++peer) {
        for (std::size_t i = 0; i < received[peer].size(); ++i) {
            office.wait_receive(Rank(peer), timeout);
            office.wait_send(Rank(peer), timeout);
            if (received[peer][i] != random_values<float>(100 * peer + me, counts[i]))
                return "a wrong message";
            update(digest, received[peer][i]);
        }
    }
    return digest.hex();
}

}  // namespace atl::test
