#include "comm/site/frame_stream.h"

#include <array>
#include <cstring>

namespace atl {

std::optional<FrameStream::Arrived> FrameStream::read(BufferPool& pool, std::int64_t longest) {
    std::array<std::byte, kFrameHeaderBytes> header{};
    do {
        if (!receive(header)) return {};
    } while (is_sign_of_life(header));
    const auto lengths = frame_lengths(header);
    if (!lengths || lengths->body_bytes > longest) {
        end("bytes that are no frame");
        return {};
    }
    Arrived arrived;
    arrived.head.resize(static_cast<std::size_t>(kFrameHeaderBytes + lengths->prefix_bytes));
    std::memcpy(arrived.head.data(), header.data(), header.size());
    if (!receive(std::span(arrived.head).subspan(header.size()))) return {};
    if (lengths->body_bytes == 0) return arrived;
    auto body = receive_body(pool, static_cast<std::size_t>(lengths->body_bytes));
    if (!body) return {};
    arrived.body = std::move(*body);
    return arrived;
}

std::optional<Payload> FrameStream::receive_body(BufferPool& pool, std::size_t bytes) {
    BufferPool::Buffer body = pool.take(bytes);
    if (!receive(body.bytes)) return {};
    return Payload(std::move(body.owner), body.bytes);
}

bool FrameStream::write(const OutgoingFrame& frame) {
    return send(frame.head, frame.body.bytes());
}

bool FrameStream::write_sign_of_life() {
    const std::array<std::byte, kFrameHeaderBytes> zeros{};
    return send(zeros, {});
}

}  // namespace atl
