#include <fmt/format.h>

#include <charconv>

#include "core/check.h"
#include "core/error.h"
#include "program/schedule_table.h"

namespace atl {
namespace {

constexpr std::string_view kLetters = "FBIW";

std::string_view name(StagePlacement placement) {
    return placement == StagePlacement::fold ? "fold" : "round_robin";
}

// Reads words and numbers of one text, and says where it can't.
class TableReader {
  public:
    explicit TableReader(std::string_view text) : rest_(text) {}

    ScheduleTable read() {
        ScheduleTable table;
        literal("schedule");
        literal("ranks");
        table.pipeline.ranks = number();
        literal("chunks");
        table.pipeline.chunks = number();
        const auto placement = word();
        if (placement == name(StagePlacement::fold))
            table.pipeline.placement = StagePlacement::fold;
        else if (placement != name(StagePlacement::round_robin))
            fail(placement, "fold or round_robin");
        literal("micro_batches");
        table.micro_batches = number();
        while (next_line()) {
            literal("rank");
            const auto found = word();
            if (found != fmt::format("{}:", table.ranks.size()))
                fail(found, fmt::format("{}:", table.ranks.size()));
            auto& slots = table.ranks.emplace_back();
            while (skip_blanks()) slots.push_back(slot(word()));
        }
        return table;
    }

  private:
    [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
        throw UserError(
            fmt::format("[schedule] line {}: \"{}\" where {} is expected", line_, found, expected));
    }

    // Whether the line goes on.
    bool skip_blanks() {
        while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
        return !rest_.empty() && rest_.front() != '\n';
    }
    bool next_line() {
        if (skip_blanks()) fail(word(), "the end of the line");
        while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == ' ')) {
            line_ += rest_.front() == '\n';
            rest_.remove_prefix(1);
        }
        return !rest_.empty();
    }
    std::string_view word() {
        skip_blanks();
        const auto found = rest_.substr(0, rest_.find_first_of(" \n"));
        rest_.remove_prefix(found.size());
        return found;
    }
    void literal(std::string_view expected) {
        if (const auto found = word(); found != expected) fail(found, expected);
    }
    std::int32_t number() { return number(word()); }
    std::int32_t number(std::string_view text) const {
        std::int32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) fail(text, "a number");
        return value;
    }

    Work work(std::string_view text) const {
        const auto kind = text.empty() ? std::string_view::npos : kLetters.find(text.front());
        const auto point = text.find('.');
        if (kind == std::string_view::npos || point == std::string_view::npos)
            fail(text, "work like F0.3 or B1.2");
        return {static_cast<WorkKind>(kind), number(text.substr(1, point - 1)),
                number(text.substr(point + 1))};
    }
    Slot slot(std::string_view text) const {
        if (text.front() != '(') return {work(text), {}};
        const auto bar = text.find('|');
        if (bar == std::string_view::npos || text.back() != ')') fail(text, "a pair like (F0.4|B1.3)");
        return {work(text.substr(1, bar - 1)), work(text.substr(bar + 1, text.size() - bar - 2))};
    }

    std::string_view rest_;
    int line_ = 1;
};

}  // namespace

std::string print(const Work& work) {
    return fmt::format("{}{}.{}", kLetters[static_cast<std::size_t>(work.kind)], work.stage,
                       work.micro_batch);
}

std::string print(const Slot& slot) {
    return slot.second ? fmt::format("({}|{})", print(slot.first), print(*slot.second)) : print(slot.first);
}

std::string print(const ScheduleTable& table) {
    const auto& pipeline = table.pipeline;
    auto text = fmt::format("schedule ranks {} chunks {} {} micro_batches {}\n", pipeline.ranks,
                            pipeline.chunks, name(pipeline.placement), table.micro_batches);
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) {
        text += fmt::format("rank {}:", rank);
        for (const auto& slot : table.ranks[rank]) text += " " + print(slot);
        text += "\n";
    }
    return text;
}

ScheduleTable parse_schedule_table(std::string_view text) {
    return TableReader(text).read();
}

}  // namespace atl
