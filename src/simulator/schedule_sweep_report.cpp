// Sweeps as text and as pictures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/line_chart.h"
#include "simulator/schedule_sweep.h"

namespace atl {
namespace {

// Red where interleaving loses, green where it wins, white where it makes no difference.
std::string colour_of(double gain) {
    const double strength = std::min(1.0, std::abs(gain - 1) / 0.4);
    const int faded = static_cast<int>(std::lround(255 - 150 * strength));
    return gain < 1 ? fmt::format("#ff{0:02x}{0:02x}", faded) : fmt::format("#{0:02x}ff{0:02x}", faded);
}

std::string region_text(double x, double y, std::string_view text, std::string_view anchor) {
    return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

}  // namespace

std::string print(const SweepTable& table) {
    auto text = fmt::format("simulated speed-up over 1F1B\n{:<21}", table.axis.name);
    for (const auto& method : schedule_methods()) text += fmt::format("{:>19}", method.name);
    text += '\n';
    for (std::size_t i = 0; i < table.speedups.size(); ++i) {
        text += fmt::format("{:<21g}", table.axis.points[i].first);
        for (const auto speedup : table.speedups[i])
            text += speedup > 0 ? fmt::format("{:>19.3f}", speedup) : fmt::format("{:>19}", "-");
        text += '\n';
    }
    return text;
}

std::string print(const RegionTable& table) {
    auto text = fmt::format(
        "simulated speed-up of strands over the best schedule without pairs; * = interleaving loses\n"
        "{:<17}{}\n{:<17}",
        table.row_name, table.column_name, "");
    for (const auto column : table.columns) text += fmt::format("{:>8g}", column);
    text += '\n';
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        text += fmt::format("{:<17g}", table.rows[i]);
        for (const auto gain : table.gains[i]) text += fmt::format("{:>7.3f}{}", gain, gain < 1 ? '*' : ' ');
        text += '\n';
    }
    return text;
}

std::string to_svg(const SweepTable& table) {
    LineChart chart{.title = "simulated speed-up over 1F1B",
                    .x_label = table.axis.name,
                    .y_label = "times 1F1B without barriers",
                    .curves = {}};
    for (std::size_t method = 0; method < schedule_methods().size(); ++method) {
        const auto& [name, mode] = schedule_methods()[method];
        ChartCurve curve{name, {}, mode == ExecutionMode::barrier};
        for (std::size_t i = 0; i < table.speedups.size(); ++i)
            if (table.speedups[i][method] > 0)
                curve.points.push_back({table.axis.points[i].first, table.speedups[i][method]});
        chart.curves.push_back(std::move(curve));
    }
    return to_svg(chart);
}

std::string to_svg(const RegionTable& table) {
    constexpr double kLeft = 110, kTop = 60, kCellWidth = 70, kCellHeight = 32;
    const double width = kCellWidth * static_cast<double>(table.columns.size());
    const double height = kCellHeight * static_cast<double>(table.rows.size());
    auto svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        std::max(kLeft + width + 20, 520.0), kTop + height + 20);
    svg += region_text(
        10, 16, "simulated speed-up of strands over the best schedule without pairs; red: it loses", "start");
    svg += region_text(kLeft, 34, table.column_name, "start") +
           region_text(10, kTop - 8, table.row_name, "start");
    for (std::size_t column = 0; column < table.columns.size(); ++column)
        svg += region_text(kLeft + kCellWidth * (static_cast<double>(column) + 0.5), kTop - 8,
                           fmt::format("{:g}", table.columns[column]), "middle");
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        const double y = kTop + kCellHeight * static_cast<double>(row);
        svg += region_text(kLeft - 8, y + 20, fmt::format("{:g}", table.rows[row]), "end");
        for (std::size_t column = 0; column < table.columns.size(); ++column) {
            const double x = kLeft + kCellWidth * static_cast<double>(column);
            const double gain = table.gains[row][column];
            svg += fmt::format(
                "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\"/>\n", x, y,
                kCellWidth - 2, kCellHeight - 2, colour_of(gain));
            svg += region_text(x + kCellWidth / 2 - 1, y + 20, fmt::format("{:.2f}", gain), "middle");
        }
    }
    return svg + "</svg>\n";
}

}  // namespace atl
