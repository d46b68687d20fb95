// SwiGLU and GELU, forward and backward.
#include "kernels/activation.h"

#include "kernels/dispatch.h"
#include "kernels/exponential.h"
#include "kernels/parallel.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

template <class T>
void run(const Swiglu<T>& op) {
    parallel_ranges(op.rows * op.width, op.width, [&](Range range) {
        for (std::int64_t row = range.begin / op.width; row * op.width < range.end; ++row) {
            const T* gates = op.gate_up + row * 2 * op.width;
            for_vectors<T>(op.width, [&](std::int64_t f, std::int64_t lanes) {
                const Vec<T> gate = load_first(gates + f, lanes);
                const Vec<T> up = load_first(gates + op.width + f, lanes);
                store_first(op.act + row * op.width + f, gate * up / (T{1} + exponential<T>(-gate)), lanes);
            });
        }
    });
}

template <class T>
void run(const SwigluBackward<T>& op) {
    parallel_ranges(op.rows * op.width, op.width, [&](Range range) {
        for (std::int64_t row = range.begin / op.width; row * op.width < range.end; ++row) {
            const T* gates = op.gate_up + row * 2 * op.width;
            T* dgates = op.dgate_up + row * 2 * op.width;
            for_vectors<T>(op.width, [&](std::int64_t f, std::int64_t lanes) {
                const Vec<T> gate = load_first(gates + f, lanes);
                const Vec<T> up = load_first(gates + op.width + f, lanes);
                const Vec<T> dact = load_first(op.dact + row * op.width + f, lanes);
                const auto [open, closed] = logistic<T>(gate);
                const Vec<T> slope = open * fma(gate, closed, broadcast(T{1}));
                store_first(dgates + f, dact * up * slope, lanes);
                store_first(dgates + op.width + f, dact * gate * open, lanes);
            });
        }
    });
}

// x/2 · (1 + tanh(z)) = x · logistic(2z): no cancellation where tanh is near −1.
template <class T>
inline constexpr T kTwoRootTwoOverPi = static_cast<T>(1.59576912160573071176);
template <class T>
inline constexpr T kCubic = static_cast<T>(0.044715);

template <class T>
inline Vec<T> gelu_argument(Vec<T> x) {
    return x * kTwoRootTwoOverPi<T> * fma(x * x, broadcast(kCubic<T>), broadcast(T{1}));
}

template <class T>
void run(const Gelu<T>& op) {
    parallel_ranges(op.count, kLanes<T>, [&](Range range) {
        for_vectors<T>(range.end - range.begin, [&](std::int64_t i, std::int64_t lanes) {
            const Vec<T> x = load_first(op.x + range.begin + i, lanes);
            store_first(op.y + range.begin + i, x / (T{1} + exponential<T>(-gelu_argument<T>(x))), lanes);
        });
    });
}

template <class T>
void run(const GeluBackward<T>& op) {
    parallel_ranges(op.count, kLanes<T>, [&](Range range) {
        for_vectors<T>(range.end - range.begin, [&](std::int64_t i, std::int64_t lanes) {
            const Vec<T> x = load_first(op.x + range.begin + i, lanes);
            const auto [open, closed] = logistic<T>(gelu_argument<T>(x));
            const Vec<T> inner_slope =
                kTwoRootTwoOverPi<T> * fma(x * x, broadcast(3 * kCubic<T>), broadcast(T{1}));
            const Vec<T> slope = open * fma(x * inner_slope, closed, broadcast(T{1}));
            store_first(op.dx + range.begin + i, load_first(op.dy + range.begin + i, lanes) * slope, lanes);
        });
    });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const Swiglu<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Swiglu<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const SwigluBackward<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const SwigluBackward<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Gelu<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Gelu<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const GeluBackward<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const GeluBackward<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
