// The built-in tokenizer: one token per byte, and one that opens every document. Its special tokens are
// defined here and nowhere else.
//
// Cost: one pass. Errors: decode throws CorruptDataError for a token that stands for nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atl {

using Token = std::uint16_t;  // as shards store it

inline constexpr Token kByteEndOfText = 256;
inline constexpr std::int64_t kByteVocabulary = 257;
inline constexpr std::int64_t kLargestVocabulary = 65536;  // what a Token can number

// Appends end-of-text, then one token per byte.
void append_document(std::string_view text, std::vector<Token>& tokens);
// The bytes of tokens; end-of-text stands for none.
std::string decode_bytes(std::span<const Token> tokens);

}  // namespace atl
