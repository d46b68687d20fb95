#include "island/whole_tensors.h"

#include "core/check.h"
#include "layout/box_copy.h"

namespace atl {
namespace {

constexpr Rank kGateway{0};

// Everything on the gateway.
Layout gateway_layout(const Layout& layout) {
    Layout gateway;
    for (const auto& [tensor, places] : layout) {
        gateway[tensor] = {places.shape, std::vector<std::vector<Box>>(places.rank_boxes.size())};
        gateway[tensor].rank_boxes.front() = {Box::whole(places.shape)};
    }
    return gateway;
}

std::map<std::string, std::vector<Transfer>> by_tensor(const std::vector<Transfer>& transfers) {
    std::map<std::string, std::vector<Transfer>> grouped;
    for (const Transfer& transfer : transfers) grouped[transfer.tensor].push_back(transfer);
    return grouped;
}

}  // namespace

WholeTensors::WholeTensors(Layout layout, Rank rank, PointToPoint* messages, Milliseconds timeout)
    : layout_(std::move(layout)), rank_(rank), messages_(messages), timeout_(timeout) {
    const Layout gateway = gateway_layout(layout_);
    to_gateway_ = by_tensor(plan_reshard(layout_, gateway));
    from_gateway_ = by_tensor(plan_reshard(gateway, layout_));
}

std::optional<Box> WholeTensors::box(const std::string& tensor) const {
    const auto found = layout_.find(tensor);
    ATOLL_CHECK(found != layout_.end(), "no tensor is named {}", tensor);
    const auto& boxes = found->second.rank_boxes.at(static_cast<std::size_t>(rank_.value()));
    if (boxes.empty()) return std::nullopt;
    ATOLL_CHECK_EQ(boxes.size(), std::size_t{1}, "boxes of {}", tensor);
    return boxes.front();
}

bool WholeTensors::holds_whole(const std::string& tensor) const {
    return box(tensor) == Box::whole(layout_.at(tensor).shape);
}

void WholeTensors::collect(const std::string& tensor, BufferView piece, BufferView whole) {
    carry_out(to_gateway_.at(tensor), {piece, box(tensor)}, {whole, Box::whole(layout_.at(tensor).shape)});
}

void WholeTensors::distribute(const std::string& tensor, BufferView whole, BufferView piece) {
    carry_out(from_gateway_.at(tensor), {whole, Box::whole(layout_.at(tensor).shape)}, {piece, box(tensor)});
}

void WholeTensors::carry_out(const std::vector<Transfer>& transfers, const Side& from, const Side& to) {
    const DType dtype = from.values.count > 0 ? from.values.dtype : to.values.dtype;
    for (const Transfer& transfer : transfers) {
        if (transfer.from != rank_ && transfer.to != rank_) continue;
        if (dtype == DType::f64) {
            carry_out<double>(transfer, from, to);
        } else {
            carry_out<float>(transfer, from, to);
        }
    }
}

template <class T>
void WholeTensors::carry_out(const Transfer& transfer, const Side& from, const Side& to) {
    const Box& box = transfer.box;
    if (transfer.from == transfer.to) {
        if (from.values.data != to.values.data)
            copy_box(std::span<const T>(from.values.as<T>()), *from.box, to.values.as<T>(), *to.box, box);
        return;
    }
    ATOLL_CHECK(messages_ != nullptr, "{} lies on other ranks, and nothing joins them", transfer.tensor);
    const auto elements = static_cast<std::size_t>(box.elements());
    staging_.resize(std::max(staging_.size(), elements));  // doubles: room for either type
    const std::span<T> staging(reinterpret_cast<T*>(staging_.data()), elements);
    if (transfer.from == rank_) {
        copy_box(std::span<const T>(from.values.as<T>()), *from.box, staging, box, box);
        messages_->post_send(view_of(staging), transfer.to);
        messages_->wait_send(transfer.to, timeout_);
    } else {
        messages_->post_receive(view_of(staging), transfer.from);
        messages_->wait_receive(transfer.from, timeout_);
        copy_box(std::span<const T>(staging), box, to.values.as<T>(), *to.box, box);
    }
}

}  // namespace atl
