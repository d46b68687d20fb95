#include "engine/allocation_counter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <mutex>

namespace atl {
namespace {

thread_local AllocationCount* charged_now = nullptr;

// What a charged block remembers: its real owner, and whom to give its bytes back to.
struct ChargedBlock {
    c10::DataPtr memory;
    AllocationCount* charged;
    std::int64_t bytes;

    static void release(void* context) {
        auto* block = static_cast<ChargedBlock*>(context);
        block->charged->live_bytes -= block->bytes;
        delete block;
    }
};

class CountingAllocator final : public c10::Allocator {
  public:
    explicit CountingAllocator(c10::Allocator* real) : real_(real) {}

    c10::DataPtr allocate(std::size_t bytes) override {
        c10::DataPtr memory = real_->allocate(bytes);
        AllocationCount* charged = charged_now;
        if (charged == nullptr || bytes == 0) return memory;
        charged->count += 1;
        charged->live_bytes += static_cast<std::int64_t>(bytes);
        charged->peak_bytes = std::max(charged->peak_bytes, charged->live_bytes);
        void* data = memory.get();
        auto* block = new ChargedBlock{std::move(memory), charged, static_cast<std::int64_t>(bytes)};
        return {data, block, &ChargedBlock::release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // a block is more than its address
    void copy_data(void* destination, const void* source, std::size_t count) const override {
        real_->copy_data(destination, source, count);
    }

  private:
    c10::Allocator* real_;
};

void install_once() {
    static std::once_flag installed;
    std::call_once(installed, [] {
        static CountingAllocator counting(c10::GetCPUAllocator());
        c10::SetCPUAllocator(&counting, /*priority=*/100);
    });
}

}  // namespace

CountAllocations::CountAllocations(AllocationCount& charged) : outer_(charged_now) {
    install_once();
    charged_now = &charged;
}

CountAllocations::~CountAllocations() {
    charged_now = outer_;
}

}  // namespace atl
