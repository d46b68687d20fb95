#include "model/initial_values.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/random.h"

namespace atl {
namespace {

double standard_deviation(const ModelShape& shape, InitialValues initial) {
    constexpr double kStandardDeviation = 0.02;
    if (initial == InitialValues::normal) return kStandardDeviation;
    return kStandardDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
}

// Visits the box row by row (runs along the last dimension): visit(first logical index, first index in the box,
// run length).
template <class Visit>
void for_each_run(const Shape& shape, const Box& box, Visit visit) {
    const auto dimensions = shape.size();
    const std::int64_t run = box.ranges.back().size();
    const std::int64_t runs = run == 0 ? 0 : box.elements() / run;
    for (std::int64_t i = 0; i < runs; ++i) {
        std::int64_t rest = i, logical = box.ranges.back().begin, stride = shape.back();
        for (std::size_t d = dimensions - 1; d-- > 0;) {
            const auto& range = box.ranges[d];
            logical += (range.begin + rest % range.size()) * stride;
            rest /= range.size();
            stride *= shape[d];
        }
        visit(logical, i * run, run);
    }
}

template <class Real>
void fill(const ModelShape& shape, const TensorSpec& tensor, std::uint64_t seed, const Box& box,
          std::span<Real> values) {
    ATOLL_CHECK(Box::whole(tensor.shape).contains(box), "{} {}", tensor.name, to_string(box));
    ATOLL_CHECK_EQ(box.elements(), static_cast<std::int64_t>(values.size()), "{}", tensor.name);
    if (tensor.initial == InitialValues::ones || tensor.initial == InitialValues::zeros) {
        std::ranges::fill(values, tensor.initial == InitialValues::ones ? Real{1} : Real{0});
        return;
    }
    const double scale = standard_deviation(shape, tensor.initial);
    const RandomStream random(seed, tensor.name);
    for_each_run(tensor.shape, box, [&](std::int64_t logical, std::int64_t local, std::int64_t run) {
        for (std::int64_t i = 0; i < run; ++i)
            values[static_cast<std::size_t>(local + i)] =
                static_cast<Real>(scale * random.normal(static_cast<std::uint64_t>(logical + i)));
    });
}

}  // namespace

void fill_initial(const ModelShape& shape, const TensorSpec& tensor, std::uint64_t seed, const Box& box,
                  std::span<float> values) {
    fill(shape, tensor, seed, box, values);
}

void fill_initial(const ModelShape& shape, const TensorSpec& tensor, std::uint64_t seed, const Box& box,
                  std::span<double> values) {
    fill(shape, tensor, seed, box, values);
}

std::vector<double> rope_table(const ModelShape& shape, std::int64_t positions) {
    const std::int64_t half = shape.head_width / 2;
    std::vector<double> table(static_cast<std::size_t>(positions * shape.head_width));
    for (std::int64_t i = 0; i < half; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(shape.head_width);
        const double frequency = std::pow(shape.rope_theta, exponent);
        for (std::int64_t position = 0; position < positions; ++position) {
            const double angle = static_cast<double>(position) * frequency;
            const auto row = static_cast<std::size_t>(position * shape.head_width);
            table[row + static_cast<std::size_t>(i)] = std::cos(angle);
            table[row + static_cast<std::size_t>(half + i)] = std::sin(angle);
        }
    }
    return table;
}

}  // namespace atl
