#include "tools/dtrun/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace dtrun::report {
namespace {

constexpr double kWidth = 440, kHeight = 200, kLeft = 48, kRight = 10, kTop = 8, kBottom = 30;
constexpr std::size_t kMostLines = 8, kMostPoints = 400, kBuckets = 120;

using Points = std::vector<std::pair<double, double>>;

// Larger values would overflow where they are scaled.
bool IsDrawn(double value) { return std::abs(value) < std::numeric_limits<double>::max() / 8; }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Take(double value) {
    if (!IsDrawn(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool any() const { return low <= high; }
  // Never empty, so that it can be divided by.
  Range Widened() const {
    if (!any()) return {0, 1};
    if (low < high) return *this;
    const double by = low == 0 ? 1 : std::abs(low) / 10;
    return {low - by, high + by};
  }
};

std::string NumberText(double value) {
  const double size = std::abs(value);
  if (size >= 1e12 || (size > 0 && size < 1e-4)) return fmt::format("{:.3g}", value);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

// From values to places in the picture.
struct Scale {
  Range x, y;
  double height = kHeight;
  double X(double value) const {
    return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return height - kBottom - (value - y.low) / (y.high - y.low) * (height - kTop - kBottom);
  }
};

std::string OpenSvg(double height, std::string_view label) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth, height,
                     Escaped(label));
}

std::string XAxis(const Scale& scale, const std::string& unit) {
  std::string out;
  const double base = scale.height - kBottom;
  for (const double tick : Ticks(scale.x.low, scale.x.high)) {
    if (tick < scale.x.low || tick > scale.x.high) continue;
    out += fmt::format("<text class=\"t\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                       scale.X(tick), base + 13, NumberText(tick));
  }
  out += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft,
                     kWidth - kRight, base, base);
  return out + fmt::format("<text class=\"t\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                           kWidth - kRight, base + 26, Escaped(unit));
}

std::string YAxis(const Scale& scale) {
  std::string out;
  for (const double tick : Ticks(scale.y.low, scale.y.high)) {
    if (tick < scale.y.low || tick > scale.y.high) continue;
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"t\" x=\"{}\" "
        "y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        kLeft, kWidth - kRight, scale.Y(tick), scale.Y(tick), kLeft - 5, scale.Y(tick) + 4, NumberText(tick));
  }
  return out;
}

// Begins anew after a value that is not finite, and where x goes back.
std::string PathOf(const Points& points, const Scale& scale) {
  std::string path;
  bool pen_down = false;
  double before = -std::numeric_limits<double>::infinity();
  for (const auto& [x, y] : points) {
    pen_down = pen_down && x >= before;
    before = x;
    if (!IsDrawn(y)) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", scale.X(x), scale.Y(y));
    pen_down = true;
  }
  return path;
}

std::string Drawn(const Line& line, std::size_t colour, const Scale& scale) {
  const std::string title = fmt::format("<title>{}</title>", Escaped(line.label));
  if (line.points.size() == 1 && IsDrawn(line.points.front().second)) {
    return fmt::format("<circle class=\"d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\">{}</circle>", colour,
                       scale.X(line.points.front().first), scale.Y(line.points.front().second), title);
  }
  return fmt::format("<path class=\"l l{}\" d=\"{}\">{}</path>", colour,
                     PathOf(Fewer(line.points, kMostPoints), scale), title);
}

// The range of all lines, and their mean, over equal parts of the x axis.
std::string Band(const std::vector<Line>& lines, const Scale& scale) {
  struct Bucket {
    Range range;
    double sum = 0;
    int count = 0;
  };
  std::vector<Bucket> buckets(kBuckets);
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      if (!IsDrawn(y)) continue;
      const double at = (x - scale.x.low) / (scale.x.high - scale.x.low) * kBuckets;
      Bucket& bucket = buckets[static_cast<std::size_t>(std::clamp(at, 0.0, kBuckets - 1.0))];
      bucket.range.Take(y);
      bucket.sum += y;
      ++bucket.count;
    }
  }
  std::string above, below;
  Points mean;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    const Bucket& bucket = buckets[i];
    if (bucket.count == 0) continue;
    const double x = scale.x.low + (static_cast<double>(i) + 0.5) / kBuckets * (scale.x.high - scale.x.low);
    above +=
        fmt::format("{}{:.1f} {:.1f}", above.empty() ? "M" : "L", scale.X(x), scale.Y(bucket.range.high));
    below.insert(0, fmt::format("L{:.1f} {:.1f}", scale.X(x), scale.Y(bucket.range.low)));
    mean.emplace_back(x, bucket.sum / bucket.count);
  }
  return fmt::format("<path class=\"band\" d=\"{}{}Z\"/><path class=\"l l0\" d=\"{}\"/>", above, below,
                     PathOf(mean, scale));
}

std::string Legend(const std::vector<Line>& lines) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += fmt::format("<span><i class=\"s{}\"></i>{} <b>{}</b></span> ", i, Escaped(lines[i].label),
                       lines[i].points.empty() ? "" : NumberText(lines[i].points.back().second));
  }
  return out + "</p>";
}

std::string LegendOfMany(const std::vector<Line>& lines) {
  Range last;
  std::string low, high;
  for (const Line& line : lines) {
    const double value = line.points.empty() ? NAN : line.points.back().second;
    if (!IsDrawn(value)) continue;
    if (value < last.low || low.empty()) low = line.label;
    if (value > last.high || high.empty()) high = line.label;
    last.Take(value);
  }
  if (!last.any()) return fmt::format("<p class=\"legend\"><span>{} ranks</span></p>", lines.size());
  return fmt::format(
      "<p class=\"legend\"><span><i class=\"s0\"></i>mean and range of {} ranks</span> <span>last: {} "
      "<b>{}</b> to {} "
      "<b>{}</b></span></p>",
      lines.size(), Escaped(low), NumberText(last.low), Escaped(high), NumberText(last.high));
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<std::pair<double, double>> Fewer(const Points& points, std::size_t most) {
  if (points.size() <= most) return points;
  const std::size_t parts = most / 2;
  Points kept;
  for (std::size_t part = 0; part < parts; ++part) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(part * points.size() / parts);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((part + 1) * points.size() / parts);
    const auto by_value = [](const auto& a, const auto& b) { return a.second < b.second; };
    auto [low, high] = std::minmax_element(begin, end, by_value);
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

std::vector<double> Ticks(double low, double high) {
  if (!(low < high) || !std::isfinite(high - low)) return {low};
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power < rough) continue;
    step = factor * power;
    break;
  }
  std::vector<double> ticks;
  for (double i = std::floor(low / step); i <= std::ceil(high / step) && ticks.size() < 12; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::string Figure(const Chart& chart) {
  Scale scale;
  for (const Line& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      scale.x.Take(x);
      scale.y.Take(y);
    }
  }
  if (!scale.x.any()) return "";
  scale.x = scale.x.Widened();
  scale.y = scale.y.Widened();
  std::string out = fmt::format("<figure><figcaption>{}</figcaption>", Escaped(chart.title));
  out += OpenSvg(kHeight, chart.title) + YAxis(scale) + XAxis(scale, chart.x);
  for (const double mark : chart.marks) {
    if (mark < scale.x.low || mark > scale.x.high) continue;
    out += fmt::format(
        "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" "
        "y2=\"{2}\"><title>restart</title></line>",
        scale.X(mark), kTop, kHeight - kBottom);
  }
  if (chart.lines.size() > kMostLines)
    return out + Band(chart.lines, scale) + "</svg>" + LegendOfMany(chart.lines) + "</figure>";
  for (std::size_t i = 0; i < chart.lines.size(); ++i) out += Drawn(chart.lines[i], i, scale);
  return out + "</svg>" + Legend(chart.lines) + "</figure>";
}

std::string Bars(const std::vector<std::string>& rows, const std::vector<Bar>& bars, const std::string& x) {
  constexpr const char* kClasses[] = {"good", "bad", "stopped", "runs"};
  constexpr double kTallest = 448;  // of all rows
  const double row_height = std::min(14.0, kTallest / static_cast<double>(rows.size()));
  const double gap = row_height > 4 ? 1 : 0;
  Scale scale;
  scale.height = kTop + kBottom + row_height * static_cast<double>(rows.size());
  scale.x.Take(0);
  for (const Bar& bar : bars) scale.x.Take(bar.to);
  scale.x = scale.x.Widened();
  std::string out = OpenSvg(scale.height, "ranks by time") + XAxis(scale, x);
  const std::size_t every = rows.size() > 32 ? (rows.size() + 15) / 16 : 1;
  for (std::size_t i = 0; i < rows.size(); i += every) {
    out += fmt::format("<text class=\"t\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 5,
                       kTop + row_height * (static_cast<double>(i) + 0.5) + 4, Escaped(rows[i]));
  }
  const auto draw = [&](const Bar& bar) {
    // One bad rank of a thousand has to be seen.
    const double height = std::max(row_height - 2 * gap, bar.kind == Bar::Kind::kBad ? 2.0 : 0.0);
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"><title>{}</title></rect>",
        kClasses[static_cast<int>(bar.kind)], scale.X(bar.from), kTop + row_height * bar.row + gap,
        std::max(1.0, scale.X(bar.to) - scale.X(bar.from) - 1), height, Escaped(bar.title));
  };
  for (const bool bad : {false, true}) {
    for (const Bar& bar : bars) {
      if ((bar.kind == Bar::Kind::kBad) == bad) draw(bar);
    }
  }
  return out + "</svg>";
}

}  // namespace dtrun::report
