#include "codec/error_feedback.h"

#include "core/check.h"
#include "kernels/outer_step.h"

namespace atl {

void add_residual(std::span<const float> residual, float beta, std::span<float> values) {
    kernels::add_weighted(residual, beta, values);
}

void subtract_decoded(PacketDecoder& decoder, const Packet& packet, std::span<float> values) {
    ATOLL_CHECK_EQ(packet.elements, static_cast<std::int64_t>(values.size()));
    std::vector<std::byte> scratch;
    const auto body = decoder.plain_body(packet, scratch);
    ATOLL_CHECK(body.has_value(), "a packet that was never verified");
    decoder.codec().decode_add({*body, packet.elements}, 0, -1.0F, values);
}

}  // namespace atl
