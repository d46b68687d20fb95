#include "simulator/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"

namespace atl {
namespace {

constexpr double kLeft = 70, kTop = 40, kWidth = 620, kHeight = 360, kLegend = 230;
constexpr std::array<std::string_view, 8> kColours = {"#2f6db5", "#d1622b", "#3a9a54", "#a23fa0",
                                                      "#c79a1d", "#4b4b4b", "#2aa5b0", "#b33a4a"};

// One axis: from values to positions, with round marks.
class Axis {
  public:
    Axis(double least, double greatest, bool logarithmic) : logarithmic_(logarithmic) {
        if (logarithmic) {
            ATOLL_CHECK_LT(0, least, "an axis of powers of ten");
            begin_ = std::floor(std::log10(least) + 1e-9);
            end_ = std::max(begin_ + 1, std::ceil(std::log10(greatest) - 1e-9));
            step_ = 1;
            return;
        }
        const double span = greatest > least ? greatest - least : std::max(1e-9, std::abs(greatest));
        step_ = std::pow(10, std::floor(std::log10(span / 4)));
        while (span / step_ > 8) step_ *= span / step_ > 16 ? 5 : 2;
        begin_ = step_ * std::floor(least / step_ + 1e-9);
        end_ = step_ * std::ceil(greatest / step_ - 1e-9);
        if (end_ <= begin_) end_ = begin_ + step_;
    }

    double share(double value) const {
        return ((logarithmic_ ? std::log10(value) : value) - begin_) / (end_ - begin_);
    }
    std::vector<double> marks() const {
        std::vector<double> values;
        const auto count = std::lround((end_ - begin_) / step_);
        for (long i = 0; i <= count; ++i) {
            const double at = begin_ + static_cast<double>(i) * step_;
            values.push_back(logarithmic_ ? std::pow(10, at) : at);
        }
        return values;
    }

  private:
    bool logarithmic_;
    double begin_ = 0;
    double end_ = 1;
    double step_ = 1;
};

std::string text_at(double x, double y, std::string_view text, std::string_view anchor = "start") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

Axis axis_of(const LineChart& chart, double ChartPoint::* coordinate, bool logarithmic) {
    double least = 0, greatest = 1;
    bool is_first = true;
    for (const auto& curve : chart.curves)
        for (const auto& point : curve.points) {
            least = is_first ? point.*coordinate : std::min(least, point.*coordinate);
            greatest = is_first ? point.*coordinate : std::max(greatest, point.*coordinate);
            is_first = false;
        }
    return {least, greatest, logarithmic};
}

std::string frame(const LineChart& chart, const Axis& x_axis, const Axis& y_axis) {
    std::string svg;
    for (const auto mark : x_axis.marks()) {
        const double x = kLeft + kWidth * x_axis.share(mark);
        svg += fmt::format("<path d=\"M{0:.1f} {1:.0f}V{2:.0f}\" stroke=\"#dddddd\"/>\n", x, kTop, kTop + kHeight);
        svg += text_at(x, kTop + kHeight + 16, fmt::format("{:.4g}", mark), "middle");
    }
    for (const auto mark : y_axis.marks()) {
        const double y = kTop + kHeight * (1 - y_axis.share(mark));
        svg += fmt::format("<path d=\"M{0:.0f} {1:.1f}H{2:.0f}\" stroke=\"#dddddd\"/>\n", kLeft, y, kLeft + kWidth);
        svg += text_at(kLeft - 6, y + 4, fmt::format("{:.4g}", std::abs(mark) < 1e-12 ? 0 : mark), "end");
    }
    svg += text_at(kLeft, 16, chart.title) + text_at(kLeft, 32, chart.y_label);
    return svg + text_at(kLeft + kWidth / 2, kTop + kHeight + 34, chart.x_label, "middle");
}

}  // namespace

std::string to_svg(const LineChart& chart) {
    const auto x_axis = axis_of(chart, &ChartPoint::x, chart.logarithmic_x);
    const auto y_axis = axis_of(chart, &ChartPoint::y, false);
    auto svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kLeft + kWidth + kLegend, kTop + kHeight + 44);
    svg += frame(chart, x_axis, y_axis);
    for (std::size_t i = 0; i < chart.curves.size(); ++i) {
        const auto& curve = chart.curves[i];
        const auto colour = kColours[i % kColours.size()];
        const auto dashes = curve.dashed ? " stroke-dasharray=\"5 4\"" : "";
        std::string line, points;
        for (const auto& point : curve.points) {
            const double x = kLeft + kWidth * x_axis.share(point.x);
            const double y = kTop + kHeight * (1 - y_axis.share(point.y));
            line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y);
            points += fmt::format(
                "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {:.4g}, {:.4g}</title></circle>\n",
                x, y, colour, curve.label, point.x, point.y);
        }
        svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n{}", line, colour,
                           dashes, points);
        const double y = kTop + 10 + 18 * static_cast<double>(i);
        svg += fmt::format("<path d=\"M{:.0f} {:.0f}h22\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
                           kLeft + kWidth + 12, y, colour, dashes);
        svg += text_at(kLeft + kWidth + 40, y + 4, curve.label);
    }
    return svg + "</svg>\n";
}

}  // namespace atl
