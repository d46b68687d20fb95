#include "data/byte_statistics.h"

#include <cmath>

#include "core/check.h"

namespace atl {

ByteStatistics::ByteStatistics() : pairs_(kSymbols * kSymbols) {}

void ByteStatistics::add_document(std::span<const Token> tokens) {
    ATOLL_CHECK(!tokens.empty() && tokens.front() == kByteEndOfText);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::size_t before = tokens[i];
        const std::size_t after = i + 1 < tokens.size() ? tokens[i + 1] : kByteEndOfText;
        ++contexts_[before];
        ++predicted_[after];
        ++pairs_[before * kSymbols + after];
    }
    ++documents_;
    predictions_ += static_cast<std::int64_t>(tokens.size());
}

double ByteStatistics::unigram_entropy() const {
    double sum = 0;
    for (const std::int64_t count : predicted_) {
        const auto times = static_cast<double>(count);
        if (count > 0) sum -= times * std::log(times / static_cast<double>(predictions_));
    }
    return predictions_ == 0 ? 0 : sum / static_cast<double>(predictions_);
}

double ByteStatistics::bigram_entropy() const {
    double sum = 0;
    for (std::size_t before = 0; before < kSymbols; ++before) {
        for (std::size_t after = 0; after < kSymbols; ++after) {
            const auto times = static_cast<double>(pair_count(before, after));
            if (times > 0) sum -= times * std::log(times / static_cast<double>(contexts_[before]));
        }
    }
    return predictions_ == 0 ? 0 : sum / static_cast<double>(predictions_);
}

double ByteStatistics::bigram_cross_entropy(const ByteStatistics& other) const {
    const auto symbols = static_cast<double>(kSymbols);
    double sum = 0;
    for (std::size_t before = 0; before < kSymbols; ++before) {
        for (std::size_t after = 0; after < kSymbols; ++after) {
            const auto times = static_cast<double>(pair_count(before, after));
            if (times == 0) continue;
            const double alone = (static_cast<double>(other.predicted_[after]) + 1) /
                                 (static_cast<double>(other.predictions_) + symbols);
            const double probability = (static_cast<double>(other.pair_count(before, after)) + alone) /
                                       (static_cast<double>(other.contexts_[before]) + 1);
            sum -= times * std::log(probability);
        }
    }
    return predictions_ == 0 ? 0 : sum / static_cast<double>(predictions_);
}

}  // namespace atl
