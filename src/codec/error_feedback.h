// Error feedback: what a codec loses in one round is added to the next, so that nothing is lost for good.
//
//   h = Δ + β·e is encoded in place of Δ; once its round is committed with it, e ← h − q, q what everybody decodes.
//   A round that is dropped, or committed without it, leaves e as it was: its Δ is lost with the round and no more.
//
// So with β = 1, over committed rounds, Σ q = Σ Δ − e; in general Σ q = Σ Δ − e − (1 − β)·Σ e before each round.
//
// e is state of one site and fragment, fp32: it stands in checkpoints, and is zero at the start and after a rejoin
// from another site's state. Threads: any. Errors: sizes that differ are a CheckError. Cost: one pass each.
// Source: Seide et al., 1-bit SGD (2014); Karimireddy et al. (arXiv 1901.09847); β < 1 as in SparseLoCo.
#pragma once

#include <span>

#include "codec/packet.h"

namespace atl {

// h from Δ, in place: values ← values + beta·residual, product and sum each rounded.
void add_residual(std::span<const float> residual, float beta, std::span<float> values);

// What is lost, in place: values ← values − what the packet made of them decodes to.
void subtract_decoded(PacketDecoder& decoder, const Packet& packet, std::span<float> values);

}  // namespace atl
