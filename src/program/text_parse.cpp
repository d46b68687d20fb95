#include <charconv>
#include <unordered_map>

#include "core/error.h"
#include "program/attribute_fields.h"
#include "program/text.h"

namespace atl {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const auto end = std::min(text.find(separator), text.size());
        if (end > 0) parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

// Reads the lines of one text. Views name values that may stand further down, so they are resolved at the end of
// the values.
class Parser {
  public:
    Program parse(std::string_view text) {
        while (!text.empty()) {
            const auto end = std::min(text.find('\n'), text.size());
            ++line_number_;
            words_ = split(text.substr(0, end), ' ');
            next_ = 0;
            if (!words_.empty()) parse_line();
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        if (!has_header_) fail("the text is empty; expected \"program 1 rank R\"");
        resolve_views();
        return std::move(program_);
    }

  private:
    [[noreturn]] void fail(const std::string& problem) const {
        throw UserError(fmt::format("[program] line {}: {}", line_number_, problem));
    }

    bool done() const { return next_ == words_.size(); }
    std::string_view word(std::string_view expected) {
        if (done()) fail(fmt::format("the line ends where {} is expected", expected));
        return words_[next_++];
    }
    void literal(std::string_view text) {
        if (const auto found = word(text); found != text)
            fail(fmt::format("\"{}\" where \"{}\" is expected", found, text));
    }

    void read(std::string_view text, bool& value) const {
        if (text != "true" && text != "false") fail(fmt::format("\"{}\" is neither true nor false", text));
        value = text == "true";
    }
    void read(std::string_view text, std::string& value) const { value = text; }
    template <class Number>
    requires std::is_arithmetic_v<Number>
    void read(std::string_view text, Number& value) const {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
            fail(fmt::format("\"{}\" is not a number that fits here", text));
    }
    template <class Tag, class Integer>
    void read(std::string_view text, StrongId<Tag, Integer>& id) const {
        Integer value{};
        read(text, value);
        id = StrongId<Tag, Integer>(value);
    }
    template <class Result>
    void read(std::string_view text, std::string_view what, std::optional<Result> found,
              Result& value) const {
        if (!found) fail(fmt::format("unknown {} \"{}\"", what, text));
        value = *found;
    }

    std::vector<std::string_view> bracketed(std::string_view text) const {
        if (text.size() < 2 || text.front() != '[' || text.back() != ']')
            fail(fmt::format("\"{}\" is not in brackets", text));
        return split(text.substr(1, text.size() - 2), ',');
    }

    void parse_line() {
        const auto what = word("a keyword");
        if (what != "program" && !has_header_) fail("the text doesn't begin with \"program 1 rank R\"");
        if (what == "program") return parse_header();
        if (what == "group") return parse_group();
        if (what == "value") return parse_value();
        if (what == "op") return parse_op();
        fail(fmt::format("\"{}\" is none of program, group, value, op", what));
    }

    void parse_header() {
        literal("1");
        literal("rank");
        read(word("a rank"), program_.rank);
        has_header_ = true;
        if (!done()) fail(fmt::format("\"{}\" stands behind the rank", words_[next_]));
    }

    void parse_group() {
        auto& members = program_.groups[std::string(word("a group's name"))];
        while (!done()) read(word("a rank"), members.emplace_back());
    }

    void parse_value() {
        Value value;
        value.id = ValueId(static_cast<std::int32_t>(program_.values.size()));
        value.name = word("a name");
        auto text = word("a role");
        read(text, "role", role_from_name(text), value.role);
        text = word("a space");
        read(text, "space", space_from_name(text), value.space);
        text = word("a dtype");
        try {
            value.dtype = dtype_from_name(text);
        } catch (const UserError&) {
            fail(fmt::format("unknown dtype \"{}\"", text));
        }
        for (const auto extent : bracketed(word("a shape"))) read(extent, value.shape.emplace_back());
        while (!done()) parse_value_extra(value);
        if (!ids_.emplace(value.name, value.id).second)
            fail(fmt::format("a second value named {}", value.name));
        program_.values.push_back(std::move(value));
    }

    void parse_value_extra(Value& value) {
        const auto what = word("tensor or view");
        if (what == "tensor") {
            value.box.emplace();
            value.box->tensor = word("a tensor's name");
            for (const auto text : bracketed(word("a box"))) {
                const auto ends = split(text, ':');
                if (ends.size() != 2) fail(fmt::format("\"{}\" is not a range BEGIN:END", text));
                auto& range = value.box->box.ranges.emplace_back();
                read(ends[0], range.begin);
                read(ends[1], range.end);
            }
        } else if (what == "view") {
            const auto base = word("the base's name");
            value.view_of.emplace();
            read(word("an offset"), value.view_of->offset_elements);
            unresolved_.push_back({value.id, std::string(base), line_number_});
        } else {
            fail(fmt::format("\"{}\" is neither tensor nor view", what));
        }
    }

    void resolve_views() {
        for (const auto& [id, base, line] : unresolved_) {
            line_number_ = line;
            program_.values[static_cast<std::size_t>(id.value())].view_of->base = id_of(base);
        }
        unresolved_.clear();
    }

    ValueId id_of(std::string_view name) const {
        const auto found = ids_.find(std::string(name));
        if (found == ids_.end()) fail(fmt::format("no value is named {}", name));
        return found->second;
    }

    void parse_op() {
        Op op;
        read(word("an op's number"), op.id);
        if (static_cast<std::size_t>(op.id.value()) != program_.ops.size())
            fail(fmt::format("op {} where op {} is expected", op.id, program_.ops.size()));
        const auto text = word("a kind");
        read(text, "kind of op", op_kind_from_name(text), op.kind);
        op.attributes = default_attributes(op.kind);
        while (true) {
            const auto next = word("\"->\"");
            if (next == "->") break;
            op.reads.push_back(id_of(next));
        }
        while (!done()) {
            const auto next = word("a name or a field");
            if (const auto equals = next.find('='); equals != std::string_view::npos)
                parse_field(op, next.substr(0, equals), next.substr(equals + 1));
            else
                op.writes.push_back(id_of(next));
        }
        program_.ops.push_back(std::move(op));
    }

    void parse_field(Op& op, std::string_view field_name, std::string_view text) const {
        if (field_name == "strand") return read(text, op.strand);
        if (field_name == "layer") return read(text, op.layer);
        if (field_name == "micro_batch") return read(text, op.micro_batch);
        if (field_name == "resource") return read(text, "resource", resource_from_name(text), op.resource);
        if (field_name == "flops") return read(text, op.flops);
        if (field_name == "bytes") return read(text, op.bytes);
        if (field_name == "scratch_bytes") return read(text, op.scratch_bytes);
        if (field_name == "after") {
            for (const auto id : split(text, ',')) read(id, op.after.emplace_back());
            return;
        }
        bool found = false;
        std::visit(
            [&](auto& attributes) {
                visit_fields(attributes, [&](std::string_view attribute, auto& field) {
                    if (attribute != field_name) return;
                    read(text, field);
                    found = true;
                });
            },
            op.attributes);
        if (!found) fail(fmt::format("{} has no field \"{}\"", name(op.kind), field_name));
    }

    struct UnresolvedView {
        ValueId id;
        std::string base;
        int line;
    };

    Program program_;
    bool has_header_ = false;
    std::unordered_map<std::string, ValueId> ids_;
    std::vector<UnresolvedView> unresolved_;
    std::vector<std::string_view> words_;  // of the present line
    std::size_t next_ = 0;
    int line_number_ = 0;
};

}  // namespace

Program parse_program(std::string_view text) {
    return Parser().parse(text);
}

}  // namespace atl
