// Report: the form for people who look at curves. Plain SVG, written by hand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/base/units.h"
#include "tools/bench/program/report.h"

namespace dtrun::bench {
namespace {

// Colours that people with any kind of colour vision tell apart (Okabe and Ito, 2008).
constexpr std::array<const char*, 8> kColours = {"#000000", "#0072b2", "#d55e00", "#009e73",
                                                 "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"};
constexpr double kWidth = 520, kHeight = 360, kLeft = 70, kTop = 60, kGap = 90, kLegendLine = 20;

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

struct Point {
  double x, y;
};

struct Curve {
  std::size_t column;
  std::vector<Point> points;
};

// A logarithmic axis that ends at whole powers of its base.
class Axis {
 public:
  Axis(double base, double low, double high, double from, double to) : base_(base), from_(from), to_(to) {
    first_ = static_cast<int>(std::floor(Log(low) + 1e-9));
    last_ = std::max(first_ + 1, static_cast<int>(std::ceil(Log(high) - 1e-9)));
  }
  double operator()(double value) const {
    return from_ + (to_ - from_) * (Log(value) - first_) / (last_ - first_);
  }
  int first() const { return first_; }
  int last() const { return last_; }
  double Value(int exponent) const { return std::pow(base_, exponent); }

 private:
  double Log(double value) const { return std::log(value) / std::log(base_); }
  double base_, from_, to_;
  int first_, last_;
};

std::vector<Curve> Curves(const Report& report, double (*value)(const Cell&)) {
  std::vector<Curve> curves;
  for (std::size_t column = 0; column < report.columns.size(); ++column) {
    Curve curve{column, {}};
    for (const Cell& cell : report.cells) {
      if (cell.column != column || !(value(cell) > 0)) continue;
      curve.points.push_back(
          {static_cast<double>(std::max<std::uint64_t>(cell.shape.bytes, 1)), value(cell)});
    }
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

std::string Text(double x, double y, const char* anchor, std::string_view text, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     Escaped(text));
}

std::string Line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>\n", x1,
                     y1, x2, y2);
}

std::string Grid(const Axis& x, const Axis& y, double left) {
  std::string out;
  const int step = std::max(1, (x.last() - x.first() + 7) / 8);
  for (int e = x.first(); e <= x.last(); ++e) {
    const double at = x(x.Value(e));
    if ((e - x.first()) % step != 0) continue;
    out += Line(at, kTop, at, kTop + kHeight);
    out += Text(at, kTop + kHeight + 18, "middle", FormatBytes(static_cast<std::uint64_t>(x.Value(e))));
  }
  for (int e = y.first(); e <= y.last(); ++e) {
    const double at = y(y.Value(e));
    out += Line(left, at, left + kWidth, at);
    out += Text(left - 8, at + 4, "end", fmt::format("{:g}", y.Value(e)));
  }
  return out;
}

// Of the curve of a column: past the last colour they start again, dashed.
std::string Stroke(std::size_t column) {
  return fmt::format("stroke=\"{}\" stroke-width=\"1.8\"{}", kColours[column % kColours.size()],
                     column < kColours.size() ? "" : " stroke-dasharray=\"6 3\"");
}

std::string Draw(const Report& report, const Curve& curve, const Axis& x, const Axis& y, const char* unit) {
  const char* colour = kColours[curve.column % kColours.size()];
  std::string path, marks;
  for (const Point& point : curve.points) {
    path += fmt::format("{:.1f},{:.1f} ", x(point.x), y(point.y));
    marks += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"><title>{}, {}: {:.4g} "
        "{}</title></circle>\n",
        x(point.x), y(point.y), colour, Escaped(report.columns[curve.column].name),
        FormatBytes(static_cast<std::uint64_t>(point.x)), point.y, unit);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n{}", path, Stroke(curve.column), marks);
}

std::string LegendEntry(const Column& column, std::size_t index, double x, double y) {
  constexpr std::size_t kLongest = 80;
  if (!column.started) return Text(x + 32, y, "start", column.name + ": skipped");
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x, y - 4, x + 24,
                     y - 4, Stroke(index)) +
         Text(x + 32, y, "start", (column.name + ": " + column.description).substr(0, kLongest));
}

// Title, grid and curves of one diagram whose left edge is `left`.
std::string Panel(const Report& report, double left, const char* title, const char* unit,
                  double (*value)(const Cell&)) {
  const std::vector<Curve> curves = Curves(report, value);
  std::string out = Text(left + kWidth / 2, kTop - 12, "middle", title);
  if (curves.empty()) return out + Text(left + kWidth / 2, kTop + kHeight / 2, "middle", "no figures");
  Point low = curves[0].points[0], high = low;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
    }
  }
  const Axis x(2, low.x, high.x, left, left + kWidth);
  const Axis y(10, low.y, high.y, kTop + kHeight, kTop);
  out += Grid(x, y, left);
  for (const Curve& curve : curves) out += Draw(report, curve, x, y, unit);
  return out;
}

}  // namespace

std::string ToSvg(const Report& report) {
  const double width = kLeft + 2 * kWidth + kGap + 20;
  const double legend = kTop + kHeight + 45;
  const std::size_t legend_lines = (report.columns.size() + 1) / 2;
  const double height = legend + kLegendLine * static_cast<double>(legend_lines) + 10;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.grid {{ stroke: #ddd; }}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  out += Text(
      width / 2, 24, "middle",
      fmt::format("{} of {}, {} ranks, {} cores, load {:.2f}, {}", OperationName(report.operation),
                  report.element.name, report.ranks, report.host.cores, report.host.load, report.started),
      " font-size=\"15\"");
  out += Panel(report, kLeft, "bus bandwidth, GB/s (higher is better)", "GB/s",
               [](const Cell& cell) { return cell.busbw; });
  out += Panel(report, kLeft + kWidth + kGap, "median time of a call, microseconds (lower is better)", "us",
               [](const Cell& cell) { return cell.time.median / 1e3; });
  for (std::size_t i = 0; i < report.columns.size(); ++i) {
    const double x = kLeft + (i % 2 == 0 ? 0 : kWidth + kGap);
    const std::size_t line = i / 2;
    out += LegendEntry(report.columns[i], i, x, legend + kLegendLine * static_cast<double>(line));
  }
  return out + "</svg>\n";
}

std::string ToHtml(const Report& report) {
  std::string table = TableHead();
  for (const Cell& cell : report.cells) table += TableRow(report, cell);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>dtrun bench: "
      "{}</title></head>\n"
      "<body>\n{}<pre>{}\n{}{}</pre>\n</body>\n</html>\n",
      OperationName(report.operation), ToSvg(report), Escaped(HeaderText(report)), Escaped(table),
      Escaped(FooterText(report)));
}

}  // namespace dtrun::bench
