// An island of processes over TCP, on Debian's Gloo: a full mesh of connections, and our own rings on its
// unbound buffers (its all-reduce names no peer when it fails, and it has no reduce-scatter to use).
//
// Threads: each object has a Gloo device of its own, with one thread, and the lifelines (comm/island/lifelines.h)
// another. Memory: one megabyte of staging, from the first sum on. Cost of construction: one rendezvous and size-1 connections.
// Errors: CommError naming the missing ranks, the place of the rendezvous and the time waited.
#pragma once

#include <memory>
#include <string>

#include "comm/island/collective.h"
#include "comm/island/point_to_point.h"
#include "comm/island/rendezvous.h"

namespace atl {

struct GlooOptions {
    std::string group = "world";  // stands in error messages
    Rank rank;
    std::int32_t size = 1;
    std::string address = "127.0.0.1";  // the other ranks reach this one at
    Milliseconds connect_timeout{30'000};
};

// Both make the process ignore SIGPIPE. Every rank calls them with the same group and size and a rendezvous to the same
// place; two objects that meet there need different groups' names.
std::unique_ptr<IslandCollective> make_gloo_collective(const GlooOptions& options, Rendezvous& rendezvous);
std::unique_ptr<PointToPoint> make_gloo_point_to_point(const GlooOptions& options, Rendezvous& rendezvous);

// Where the process takes its gloo:: functions from: the path of the loaded library. libtorch carries an
// incompatible Gloo under the same names, so whoever links it checks at the start that this is libgloo.
std::string gloo_library_path();

}  // namespace atl
