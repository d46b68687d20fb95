// Curves of simulated figures as a picture: one SVG, no scripts, axes with round marks, a legend beside the curves.
//
// Points are drawn in the order given and joined; each shows its numbers on hovering. Pure function.
#pragma once

#include <string>
#include <vector>

namespace atl {

struct ChartPoint {
    double x = 0;
    double y = 0;
};

struct ChartCurve {
    std::string label;
    std::vector<ChartPoint> points;
    bool dashed = false;
};

struct LineChart {
    std::string title;
    std::string x_label;
    std::string y_label;
    bool logarithmic_x = false;  // every x is then above 0
    std::vector<ChartCurve> curves;
};

std::string to_svg(const LineChart& chart);

}  // namespace atl
