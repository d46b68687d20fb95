// Clusters as the simulator sees them: equal accelerators in equal nodes, joined by classes of links.
//
// Rates are bytes/s and FLOP/s, latencies seconds. `compute_efficiency` is the share of the peak that the compute ops
// of a training step reach while nothing communicates. Plain data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/cost_model.h"

namespace atl {

struct Cluster {
    std::string name;
    std::string provenance;  // of the numbers
    std::int32_t accelerators = 1;
    std::int32_t accelerators_per_node = 1;
    double peak_flops_per_second = 0;  // of one accelerator, in what it trains with
    double compute_efficiency = 1;
    double memory_bytes_per_second = 0;
    LinkRate intra_node;  // of one accelerator
    LinkRate inter_node;

    double compute_flops_per_second() const { return peak_flops_per_second * compute_efficiency; }
};

const std::vector<Cluster>& published_clusters();
// Throws UserError with the nearest name.
const Cluster& cluster_from_name(std::string_view name);

// For programs of fp32 values on a cluster that computes and sends in 16 bits: bytes count half. Tensor-parallel groups
// of `tensor_ranks` ride the links inside nodes where they fit.
MachineRates rates_of(const Cluster& cluster, std::int32_t tensor_ranks);

}  // namespace atl
