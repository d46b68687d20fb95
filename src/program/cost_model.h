// The cost model: seconds of an op from its flops, its bytes and the machine's rates.
//
// compute, copy, host: overhead + max(flops / rate, bytes / memory rate). Links: latency per communication step +
// bytes / rate; over n ranks a ring all-reduce takes 2 (n - 1) steps, an all-gather, a reduce-scatter and a broadcast
// n - 1, and the transfer of a send or a receive one. `bytes` are those that a rank sends.
#pragma once

#include "program/program.h"

namespace atl {

struct LinkRate {
    double bytes_per_second = 1e9;
    double latency_seconds = 0;
};

struct MachineRates {
    double flops_per_second = 1e11;
    double memory_bytes_per_second = 1e10;
    double copy_bytes_per_second = 1e10;
    double op_overhead_seconds = 0;
    LinkRate link_intra;
    LinkRate link_inter;
    LinkRate link_wan;
    LinkRate point_to_point;  // sends and receives
};

// Of a processor core of these years, and ranks of one machine over its loopback device: where nothing was measured.
inline constexpr MachineRates kTypicalRates{.flops_per_second = 9e10,
                                            .memory_bytes_per_second = 8e9,
                                            .copy_bytes_per_second = 8e9,
                                            .op_overhead_seconds = 5e-6,
                                            .link_intra = {1e9, 5e-5},
                                            .link_inter = {1e9, 5e-5},
                                            .link_wan = {1e8, 1e-2},
                                            .point_to_point = {1e9, 5e-5}};

double predicted_seconds(const Program& program, const Op& op, const MachineRates& rates);
std::vector<double> predicted_seconds(const Program& program, const MachineRates& rates);  // [op]

}  // namespace atl
