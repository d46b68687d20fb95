#include "codec/top_k_codec.h"

#include <fmt/format.h>

#include <string>

#include "core/check.h"
#include "kernels/top_k_code.h"

namespace atl {

namespace {

class TopKCodec final : public Codec {
  public:
    TopKCodec(std::int64_t kept, kernels::InstructionSet set)
        : Codec(set), kept_(kept), name_(fmt::format("top_k_{}", kept)) {
        ATOLL_CHECK(kept >= 1 && kept <= kernels::kTopKTile, "{} of {} values", kept, kernels::kTopKTile);
    }

    CodecId id() const override { return CodecId::top_k; }
    std::string_view name() const override { return name_; }
    double most_norm_gain() const override { return 1 + 1.0 / 128; }  // means of magnitudes, in bf16
    std::int64_t body_bytes(std::int64_t elements) const override {
        return kernels::top_k_bytes(kept_, elements);
    }

    bool encode(std::span<const float> values, std::span<std::byte> body) const override {
        return kernels::top_k_encode(
            kept_, values, {reinterpret_cast<std::uint8_t*>(body.data()), body.size()}, instruction_set());
    }
    bool is_finite(const Body& body) const override { return kernels::top_k_valid(records_of(body, 0)); }
    void decode(const Body& body, std::size_t first, std::span<float> values) const override {
        kernels::top_k_decode(records_of(body, first), values);
    }
    void decode_add(const Body& body, std::size_t first, float weight, std::span<float> sum) const override {
        kernels::top_k_decode_add(records_of(body, first), weight, sum);
    }

  private:
    kernels::TopKRecords records_of(const Body& body, std::size_t first) const {
        return {.kept = kept_,
                .elements = body.elements,
                .records = {reinterpret_cast<const std::uint8_t*>(body.bytes.data()), body.bytes.size()},
                .first = static_cast<std::int64_t>(first)};
    }

    std::int64_t kept_;
    std::string name_;
};

}  // namespace

std::unique_ptr<const Codec> make_top_k_codec(std::int64_t kept, kernels::InstructionSet set) {
    return std::make_unique<TopKCodec>(kept, set);
}

}  // namespace atl
