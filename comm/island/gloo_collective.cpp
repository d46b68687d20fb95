#include "comm/island/gloo_collective.h"

#include <algorithm>

#include "comm/island/gloo_mesh.h"
#include "comm/island/gloo_ring.h"
#include "core/check.h"

namespace atl {
namespace {

class GlooCollective final : public IslandCollective {
  public:
    GlooCollective(const GlooOptions& options, Rendezvous& rendezvous)
        : mesh_(options, rendezvous), ring_(mesh_) {}

    Rank rank() const override { return Rank(mesh_.rank()); }
    std::int32_t size() const override { return mesh_.size(); }

    void all_reduce(BufferView values, Milliseconds timeout) override {
        reduce_and_gather(mesh_.begin_with_all("all_reduce", timeout), Combination::sum, values);
    }
    void all_reduce_max(BufferView values, Milliseconds timeout) override {
        reduce_and_gather(mesh_.begin_with_all("all_reduce_max", timeout), Combination::maximum, values);
    }

    void all_gather_rows(BufferView piece, BufferView whole, std::int64_t rows,
                         Milliseconds timeout) override {
        const MeshCall call = mesh_.begin_with_all("all_gather_rows", timeout);
        const RingRows cut{whole, rows};
        std::byte* place = check_piece(piece, cut);
        if (piece.data != place) copy_bytes(piece, place);
        if (size() > 1 && whole.count > 0) ring_.all_gather(call, cut);
    }

    void reduce_scatter_rows(BufferView whole, BufferView piece, std::int64_t rows,
                             Milliseconds timeout) override {
        const MeshCall call = mesh_.begin_with_all("reduce_scatter_rows", timeout);
        const RingRows cut{whole, rows};
        check_piece(piece, cut);
        if (size() == 1) return copy_bytes(whole, static_cast<std::byte*>(piece.data));
        if (whole.count > 0) ring_.reduce_scatter(call, cut, piece);
    }

    void broadcast(BufferView values, Rank root, Milliseconds timeout) override {
        const MeshCall call = mesh_.begin_with_all("broadcast", timeout);
        if (size() == 1 || values.count == 0) return;
        UnboundBuffer buffer = mesh_.buffer_over(values.data, values.bytes());
        if (rank() == root) {
            for (const int peer : mesh_.peers()) mesh_.send(call, buffer, peer, {0, values.bytes()});
            for (const int peer : mesh_.peers()) mesh_.wait_sent(call, buffer, peer);
        } else {
            mesh_.receive(call, buffer, root.value(), {0, values.bytes()});
            mesh_.wait_received(call, buffer, root.value());
        }
    }

    std::vector<std::string> gather(std::string_view bytes, Rank root, Milliseconds timeout) override {
        const MeshCall call = mesh_.begin_with_all("gather", timeout);
        if (rank() == root) return trade_strings(call, bytes, {}, mesh_.peers());
        trade_strings(call, bytes, {root.value()}, {});
        return {};
    }

    std::vector<std::string> all_gather(std::string_view bytes, Milliseconds timeout) override {
        const MeshCall call = mesh_.begin_with_all("all_gather", timeout);
        return trade_strings(call, bytes, mesh_.peers(), mesh_.peers());
    }

    void barrier(Milliseconds timeout) override {
        const MeshCall call = mesh_.begin_with_all("barrier", timeout);
        trade_strings(call, {}, mesh_.peers(), mesh_.peers());
    }

    void give_up(const std::string& why) override { mesh_.give_up(why); }

  private:
    static void copy_bytes(const BufferView& from, std::byte* to) {
        std::copy_n(static_cast<const std::byte*>(from.data), from.bytes(), to);
    }

    // Where this member's piece lies in the whole.
    std::byte* check_piece(const BufferView& piece, const RingRows& whole) const {
        const RingChunk bytes = whole.chunk_bytes(size(), mesh_.rank());
        ATOLL_CHECK_EQ(piece.bytes(), bytes.size(), "piece of rank {} of {} rows", rank(), whole.rows);
        return static_cast<std::byte*>(whole.values.data) + bytes.begin;
    }

    void reduce_and_gather(const MeshCall& call, Combination combination, const BufferView& values) {
        ATOLL_CHECK(values.dtype == DType::f32 || values.dtype == DType::f64, "{}", name(values.dtype));
        if (size() == 1 || values.count == 0) return;
        const RingRows elements{values, values.count};
        ring_.reduce_in_place(call, combination, elements);
        ring_.all_gather(call, elements);
    }

    // Sends length, then bytes, to each of `to` and receives the same from each of `from`; by rank, with one's own.
    // Gloo's sends end only when the other side receives, so they are waited for last.
    std::vector<std::string> trade_strings(const MeshCall& call, std::string_view bytes,
                                           const std::vector<int>& to, const std::vector<int>& from) {
        std::vector<std::string> all(static_cast<std::size_t>(size()));
        all[mesh_.rank()] = bytes;
        if (size() == 1) return all;
        std::string body(bytes);
        std::uint64_t length = body.size();
        UnboundBuffer header_out = mesh_.buffer_over(&length, sizeof length);
        UnboundBuffer body_out = mesh_.buffer_over(body.data(), static_cast<std::int64_t>(length));
        for (const int peer : to) {
            mesh_.send(call, header_out, peer, {0, sizeof length});
            if (length > 0) mesh_.send(call, body_out, peer, {0, static_cast<std::int64_t>(length)});
        }
        for (const int peer : from) {
            std::uint64_t coming = 0;
            UnboundBuffer header = mesh_.buffer_over(&coming, sizeof coming);
            mesh_.receive(call, header, peer, {0, sizeof coming});
            mesh_.wait_received(call, header, peer);
            all[peer].resize(coming);
            if (coming == 0) continue;
            UnboundBuffer body_in = mesh_.buffer_over(all[peer].data(), static_cast<std::int64_t>(coming));
            mesh_.receive(call, body_in, peer, {0, static_cast<std::int64_t>(coming)});
            mesh_.wait_received(call, body_in, peer);
        }
        for (const int peer : to) {
            mesh_.wait_sent(call, header_out, peer);
            if (length > 0) mesh_.wait_sent(call, body_out, peer);
        }
        return all;
    }

    GlooMesh mesh_;
    GlooRing ring_;
};

}  // namespace

std::unique_ptr<IslandCollective> make_gloo_collective(const GlooOptions& options, Rendezvous& rendezvous) {
    return std::make_unique<GlooCollective>(options, rendezvous);
}

}  // namespace atl
