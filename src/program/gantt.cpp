#include "program/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/check.h"
#include "program/text.h"

namespace atl {
namespace {

BarKind bar_kind(const Op& op) {
    if (is_collective(op.kind)) return BarKind::collective;
    if (is_point_to_point(op.kind)) return BarKind::message;
    if (op.micro_batch < 0) return BarKind::other_compute;
    const auto kind = name(op.kind);
    if (kind.ends_with("_weight") || op.kind == OpKind::embedding_backward) return BarKind::weight_gradient;
    return kind.find("backward") == std::string_view::npos ? BarKind::forward : BarKind::input_gradient;
}

BarKind bar_kind(WorkKind kind) {
    switch (kind) {
        case WorkKind::forward:
            return BarKind::forward;
        case WorkKind::weight_gradient:
            return BarKind::weight_gradient;
        case WorkKind::backward:
        case WorkKind::input_gradient:
            break;
    }
    return BarKind::input_gradient;
}

std::string milliseconds(double start_seconds, double end_seconds) {
    return fmt::format("{:.3f} to {:.3f} ms", start_seconds * 1e3, end_seconds * 1e3);
}

// ---- drawing ----

constexpr double kLeft = 150, kWidth = 1400, kTop = 44, kRowHeight = 22, kBarHeight = 18;
constexpr std::array<std::string_view, 6> kColours = {"#7aa6e0", "#86c98b", "#c9dd86",
                                                      "#b9b9b9", "#f0b45e", "#c69ad6"};
constexpr std::array<std::string_view, 6> kMeanings = {"forward",   "input gradient", "weight gradient",
                                                       "optimizer", "collective",     "message"};

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '&')
            result += "&amp;";
        else
            result += c;
    }
    return result;
}

std::string text_at(double x, double y, std::string_view text, std::string_view anchor = "start") {
    return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                       escaped(text));
}

std::string legend() {
    std::string svg;
    double x = kLeft;
    for (std::size_t i = 0; i < kColours.size(); ++i) {
        svg += fmt::format("<rect x=\"{:.0f}\" y=\"22\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x,
                           kColours[i]);
        svg += text_at(x + 16, 32, kMeanings[i]);
        x += 24 + 7 * static_cast<double>(kMeanings[i].size());
    }
    return svg;
}

std::string draw(const GanttBar& bar, double y, double scale) {
    const double x = kLeft + bar.start_seconds * scale;
    const double width = (bar.end_seconds - bar.start_seconds) * scale;
    auto svg = fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"{}\">"
        "<title>{}</title></rect>\n",
        x, y, width, kBarHeight, kColours.at(static_cast<std::size_t>(bar.kind)),
        bar.strand == 0 ? "#ffffff" : "#202020", escaped(bar.tooltip));
    if (7 * static_cast<double>(bar.label.size()) < width)
        svg += text_at(x + width / 2, y + kBarHeight - 5, bar.label, "middle");
    return svg;
}

// A round step of 1, 2 or 5 times a power of ten that gives about ten marks.
double mark_seconds(double total_seconds) {
    double step = 1e-9;
    while (step * 10 <= total_seconds / 10) step *= 10;
    for (const double factor : {2.0, 5.0, 10.0})
        if (step * factor <= total_seconds / 8) return step * factor;
    return step;
}

}  // namespace

Gantt make_gantt(const std::vector<Program>& programs, const std::vector<StepTiming>& timings) {
    Gantt gantt;
    for (const auto& timing : timings) {
        ATOLL_CHECK_EQ(timing.ops.size(), programs.size(), "timing {}", timing.label);
        gantt.title += (gantt.title.empty() ? "" : ", then ") + timing.label;
        for (std::size_t i = 0; i < programs.size(); ++i) {
            std::map<Resource, GanttRow> rows;
            ATOLL_CHECK_EQ(timing.ops[i].size(), programs[i].ops.size(), "timing {}", timing.label);
            for (const auto& op : programs[i].ops) {
                const auto& time = timing.ops[i][static_cast<std::size_t>(op.id.value())];
                auto& row = rows[op.resource];
                row.label = fmt::format("{} rank {} {}", timing.label, programs[i].rank, name(op.resource));
                row.bars.push_back({time.start_seconds, time.end_seconds, bar_kind(op), op.strand,
                                    op.micro_batch < 0 ? "" : fmt::format("{}", op.micro_batch),
                                    fmt::format("{}, {}", describe(op),
                                                milliseconds(time.start_seconds, time.end_seconds))});
            }
            for (auto& [resource, row] : rows) gantt.rows.push_back(std::move(row));
        }
    }
    return gantt;
}

Gantt make_gantt(const ScheduleTable& table, const ScheduleEvaluation& evaluation) {
    Gantt gantt;
    gantt.title = fmt::format("{} ranks, {} micro-batches, bubble {:.1f} %", table.pipeline.ranks,
                              table.micro_batches, 100 * evaluation.bubble_share());
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) {
        GanttRow first{fmt::format("rank {}", rank), {}}, second{"second strand", {}};
        for (std::size_t i = 0; i < table.ranks[rank].size(); ++i) {
            const auto& slot = table.ranks[rank][i];
            const auto& time = evaluation.slots[rank][i];
            const auto add = [&](GanttRow& row, const Work& work, std::int32_t strand) {
                row.bars.push_back({time.start_seconds, time.end_seconds, bar_kind(work.kind), strand,
                                    print(work),
                                    print(slot) + ", " + milliseconds(time.start_seconds, time.end_seconds)});
            };
            add(first, slot.first, 0);
            if (slot.second) add(second, *slot.second, 1);
        }
        gantt.rows.push_back(std::move(first));
        if (!second.bars.empty()) gantt.rows.push_back(std::move(second));
    }
    return gantt;
}

std::string to_svg(const Gantt& gantt) {
    double total_seconds = 0;
    for (const auto& row : gantt.rows)
        for (const auto& bar : row.bars) total_seconds = std::max(total_seconds, bar.end_seconds);
    const double scale = total_seconds > 0 ? kWidth / total_seconds : 1;
    const double bottom = kTop + kRowHeight * static_cast<double>(gantt.rows.size());
    auto svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#ffffff\"/>\n",
        kLeft + kWidth + 20, bottom + 24);
    svg += text_at(kLeft, 14, gantt.title) + legend();
    const double step = total_seconds > 0 ? mark_seconds(total_seconds) : 1;
    for (double at = 0; at <= total_seconds; at += step) {
        const double x = kLeft + at * scale;
        svg += fmt::format("<path d=\"M{0:.2f} {1:.0f}V{2:.2f}\" stroke=\"#dddddd\"/>\n", x, kTop, bottom);
        svg += text_at(x, bottom + 14, fmt::format("{:.6g} ms", at * 1e3), "middle");
    }
    double y = kTop;
    for (const auto& row : gantt.rows) {
        svg += text_at(kLeft - 6, y + kBarHeight - 5, row.label, "end");
        for (const auto& bar : row.bars) svg += draw(bar, y + 2, scale);
        y += kRowHeight;
    }
    return svg + "</svg>\n";
}

}  // namespace atl
