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

// What both sides hold of `box`. A cell may lie in several pieces: queries and keys of a fused matrix meet.
template <class T>
void copy_common(const std::vector<BoxView>& from, const std::vector<BoxView>& to, const Box& box) {
    for (const BoxView& source : from)
        for (const BoxView& target : to) {
            if (source.values.data == target.values.data) continue;  // the gateway's own memory
            const auto held = intersect(source.box, box);
            const auto common = held ? intersect(*held, target.box) : std::nullopt;
            if (common)
                copy_box(std::span<const T>(source.values.as<T>()), source.box, target.values.as<T>(),
                         target.box, *common);
        }
}

}  // namespace

WholeTensors::WholeTensors(Layout layout, Rank rank, PointToPoint* messages, Milliseconds timeout)
    : layout_(std::move(layout)), rank_(rank), messages_(messages), timeout_(timeout) {
    const Layout gateway = gateway_layout(layout_);
    to_gateway_ = by_tensor(plan_reshard(layout_, gateway));
    from_gateway_ = by_tensor(plan_reshard(gateway, layout_));
}

void WholeTensors::collect(const std::string& tensor, const std::vector<BoxView>& pieces, BufferView whole) {
    carry_out(to_gateway_.at(tensor), pieces, as_piece(tensor, whole));
}

void WholeTensors::distribute(const std::string& tensor, BufferView whole,
                              const std::vector<BoxView>& pieces) {
    carry_out(from_gateway_.at(tensor), as_piece(tensor, whole), pieces);
}

std::vector<BoxView> WholeTensors::as_piece(const std::string& tensor, BufferView whole) const {
    if (whole.count == 0) return {};
    return {{Box::whole(layout_.at(tensor).shape), whole}};
}

void WholeTensors::carry_out(const std::vector<Transfer>& transfers, const std::vector<BoxView>& from,
                             const std::vector<BoxView>& to) {
    if (from.empty() && to.empty()) return;
    const DType dtype = (from.empty() ? to : from).front().values.dtype;
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
void WholeTensors::carry_out(const Transfer& transfer, const std::vector<BoxView>& from,
                             const std::vector<BoxView>& to) {
    if (transfer.from == transfer.to) return copy_common<T>(from, to, transfer.box);
    ATOLL_CHECK(messages_ != nullptr, "{} lies on other ranks, and nothing joins them", transfer.tensor);
    const auto elements = static_cast<std::size_t>(transfer.box.elements());
    staging_.resize(std::max(staging_.size(), elements));  // doubles: room for either type
    const std::span<T> staging(reinterpret_cast<T*>(staging_.data()), elements);
    const std::vector<BoxView> staged{{transfer.box, view_of(staging)}};
    if (transfer.from == rank_) {
        copy_common<T>(from, staged, transfer.box);
        messages_->post_send(view_of(staging), transfer.to);
        messages_->wait_send(transfer.to, timeout_);
    } else {
        messages_->post_receive(view_of(staging), transfer.from);
        messages_->wait_receive(transfer.from, timeout_);
        copy_common<T>(staged, to, transfer.box);
    }
}

}  // namespace atl
