#include "core/random.h"

#include <cmath>

#include "core/check.h"
#include "core/hash.h"

namespace atl {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
                   static_cast<std::uint32_t>(product1),
                   static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
                   static_cast<std::uint32_t>(product0)};
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    return counter;
}

namespace {

// Coefficients from the constant term upward.
template <std::size_t n>
double polynomial(const std::array<double, n>& coefficients, double x) {
    double sum = coefficients.back();
    for (std::size_t i = n - 1; i-- > 0;) sum = sum * x + coefficients[i];
    return sum;
}

// ln x for x > 0, to 1e-15, from operations that every processor rounds alike.
double portable_log(double x) {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);  // [1/2, 1)
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2;
        --exponent;
    }
    // ln m = 2 artanh(s) = 2 (s + s³/3 + s⁵/5 + …), |s| <= 0.172
    const double s = (mantissa - 1) / (mantissa + 1);
    static constexpr std::array<double, 11> kOddReciprocals = {
        1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
    return 2 * s * polynomial(kOddReciprocals, s * s) + exponent * 0.69314718055994530942;
}

// The x below which a standard normal number lies with probability p, 0 < p < 1; relative error 1e-15.
// Source: Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution" (1988), PPND16.
double inverse_normal(double p) {
    static constexpr std::array<double, 8> kCentreAbove = {
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
    static constexpr std::array<double, 8> kCentreBelow = {1.0,
                                                           4.2313330701600911252e1,
                                                           6.8718700749205790830e2,
                                                           5.3941960214247511077e3,
                                                           2.1213794301586595867e4,
                                                           3.9307895800092710610e4,
                                                           2.8729085735721942674e4,
                                                           5.2264952788528545610e3};
    static constexpr std::array<double, 8> kMiddleAbove = {
        1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr std::array<double, 8> kMiddleBelow = {1.0,
                                                           2.05319162663775882187e0,
                                                           1.67638483018380384940e0,
                                                           6.89767334985100004550e-1,
                                                           1.48103976427480074590e-1,
                                                           1.51986665636164571966e-2,
                                                           5.47593808499534494600e-4,
                                                           1.05075007164441684324e-9};
    static constexpr std::array<double, 8> kTailAbove = {
        6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr std::array<double, 8> kTailBelow = {1.0,
                                                         5.99832206555887937690e-1,
                                                         1.36929880922735805310e-1,
                                                         1.48753612908506148525e-2,
                                                         7.86869131145613259100e-4,
                                                         1.84631831751005468180e-5,
                                                         1.42151175831644588870e-7,
                                                         2.04426310338993978564e-15};
    const double q = p - 0.5;
    if (std::abs(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        return q * polynomial(kCentreAbove, r) / polynomial(kCentreBelow, r);
    }
    const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
    const double magnitude = r <= 5 ? polynomial(kMiddleAbove, r - 1.6) / polynomial(kMiddleBelow, r - 1.6)
                                    : polynomial(kTailAbove, r - 5) / polynomial(kTailBelow, r - 5);
    return q < 0 ? -magnitude : magnitude;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view stream)
    : RandomStream(seed, xxh3_64(std::as_bytes(std::span(stream)))) {}

std::uint64_t RandomStream::bits(std::uint64_t index) const {
    const auto block =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    return std::uint64_t{block[0]} | std::uint64_t{block[1]} << 32;
}

double RandomStream::uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
    ATOLL_CHECK_LT(std::uint64_t{0}, bound);
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
}

double RandomStream::normal(std::uint64_t index) const {
    return inverse_normal((static_cast<double>(bits(index) >> 11) + 0.5) * 0x1.0p-53);
}

RandomPermutation::RandomPermutation(std::uint64_t seed, std::uint64_t stream, std::uint64_t size)
    : random_(seed, stream), size_(size), half_bits_(1) {
    ATOLL_CHECK_LT(std::uint64_t{0}, size);
    while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

std::uint64_t RandomPermutation::operator()(std::uint64_t position) const {
    ATOLL_CHECK_LT(position, size_);
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t value = position;
    do {
        std::uint64_t left = value >> half_bits_;
        std::uint64_t right = value & mask;
        for (std::uint64_t round = 0; round < 4; ++round) {
            const std::uint64_t mixed = left ^ (random_.bits(right | round << 32) & mask);
            left = right;
            right = mixed;
        }
        value = left << half_bits_ | right;
    } while (value >= size_);
    return value;
}

}  // namespace atl
