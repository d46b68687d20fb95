#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "core/clock.h"
#include "island/bench.h"

namespace atl {

double measure_matmul_peak(std::int32_t threads, DType dtype) {
    constexpr double kSecondsPerSize = 0.1;
    const c10::InferenceMode guard;
    const SystemClock clock;
    at::set_num_threads(threads);
    double best = 0;
    for (const std::int64_t size : {512, 768, 1024}) {
        const auto options = at::TensorOptions().dtype(dtype == DType::f64 ? at::kDouble : at::kFloat);
        const at::Tensor a = at::empty({size, size}, options).fill_(0.5);
        const at::Tensor b = at::empty({size, size}, options).fill_(0.25);
        at::Tensor c = at::empty({size, size}, options);
        at::mm_out(c, a, b);  // the library sets itself up
        const TimePoint begin = clock.now();
        TimePoint end = begin;
        while (seconds(end - begin) < kSecondsPerSize) {
            const TimePoint before = end;
            at::mm_out(c, a, b);
            end = clock.now();
            const auto flops = 2.0 * static_cast<double>(size * size * size);
            best = std::max(best, flops / seconds(end - before));
        }
    }
    return best;
}

}  // namespace atl
