#include "data/tokenizer.h"

#include <fmt/format.h>

#include "core/error.h"

namespace atl {

void append_document(std::string_view text, std::vector<Token>& tokens) {
    tokens.reserve(tokens.size() + text.size() + 1);
    tokens.push_back(kByteEndOfText);
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
}

std::string decode_bytes(std::span<const Token> tokens) {
    std::string text;
    text.reserve(tokens.size());
    for (const Token token : tokens) {
        if (token == kByteEndOfText) continue;
        if (token > kByteEndOfText)
            throw CorruptDataError(
                fmt::format("[data] token {} stands for no byte; bytes end at 255, end-of-text is {}", token,
                            kByteEndOfText));
        text += static_cast<char>(token);
    }
    return text;
}

}  // namespace atl
