// Line charts and bars as inline SVG, for a page without scripts.
//
// Pure; any thread. All texts are escaped here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrun::report {

// For HTML and SVG: markup and quotes as entities, control characters shown.
std::string Escaped(std::string_view text);

struct Line {
  std::string label;
  std::vector<std::pair<double, double>> points;  // a value that is not finite interrupts the line
};
struct Chart {
  std::string title;
  std::string x;  // "min", "step"
  std::vector<Line> lines;
  std::vector<double> marks = {};  // vertical, on the x axis: restarts
};
// A figure with a title, the chart, and a legend with the last values. Of more than eight lines it shows the
// mean and the range instead.
std::string Figure(const Chart& chart);

struct Bar {
  int row = 0;
  double from = 0, to = 0;
  enum class Kind { kGood, kBad, kStopped, kRuns } kind = Kind::kGood;
  std::string title;
};
// Bars over time, one row for each of `rows`; `x` is the unit of the axis.
std::string Bars(const std::vector<std::string>& rows, const std::vector<Bar>& bars, const std::string& x);

// At most `most` points that keep the shape: the least and the greatest of each of `most` / 2 parts.
std::vector<std::pair<double, double>> Fewer(const std::vector<std::pair<double, double>>& points,
                                             std::size_t most);
// Three to eight round numbers from about `low` to `high`.
std::vector<double> Ticks(double low, double high);

}  // namespace dtrun::report
