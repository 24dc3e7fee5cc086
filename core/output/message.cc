#include "core/output/message.h"

#include <algorithm>
#include <cstddef>

#include "core/base/text.h"

namespace dtrun::output {
namespace {

constexpr std::string_view kQuoted = "    | ";
// Minimum columns for a wrapped value; with less, continuation lines start further left.
constexpr std::size_t kNarrow = 10;
constexpr std::string_view kPlain = "\033[0m";
constexpr std::string_view kRed = "\033[1;31m", kGreen = "\033[32m", kYellow = "\033[33m", kBold = "\033[1m",
                           kFaint = "\033[2m";

struct Paint {
  std::string_view label = {};  // applies to the first `size` bytes
  std::size_t size = 0;
  std::string_view all = {};
};

bool Holds(std::string_view line, std::string_view part) { return line.find(part) != line.npos; }

// The end of the label in "  word       value" or "  some words: value"; 0: no label.
std::size_t LabelEnd(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == 0 || begin == line.npos) return 0;
  const std::size_t colon = line.find(": ", begin), gap = line.find("  ", begin);
  if (gap < colon) return gap;
  return colon == line.npos ? 0 : colon + 1;
}

Paint PaintOf(std::string_view line) {
  if (line.starts_with("dtrun: job '")) {
    if (Holds(line, "' succeeded: ")) return {.all = kGreen};
    return {.all = Holds(line, "' was interrupted ") ? kYellow : kRed};
  }
  if (line.starts_with("dtrun: ")) return {.all = Holds(line, "restart") ? kYellow : ""};
  if (line.starts_with("dtrun ")) return {.all = kBold};
  if (line.starts_with(kQuoted)) return {};
  const std::size_t end = LabelEnd(line);
  if (end == 0) return {};
  const std::string_view label = Trim(line.substr(0, end));
  if (label == "warning") return {kYellow, end};
  if (label == "next:" || label.starts_with("known failure")) return {kBold, end};
  return {kFaint, end};
}

std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !IsContinuation(c); }));
}

// The indent of continuation lines: below the value, unless that leaves too few columns.
std::size_t IndentOf(std::string_view line, std::size_t columns) {
  const std::size_t end = LabelEnd(line);
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t value = end == 0 ? line.npos : line.find_first_not_of(' ', end);
  const bool table = value != line.npos && value > end + 1;
  const std::size_t indent = table ? value : begin + 2;
  return columns < indent + kNarrow ? begin + 2 : indent;
}

// Wraps the line between words.
std::string Broken(std::string_view line, std::size_t columns) {
  if (columns == 0 || WidthOf(line) <= columns || line.starts_with(kQuoted)) return std::string(line);
  const std::string indent(IndentOf(line, columns), ' ');
  std::string out;
  std::size_t width = 0;
  bool first = true;  // the first word of a line is placed however long it is
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  out = line.substr(0, begin);
  width = begin;
  for (std::size_t at = begin; at < line.size();) {
    const std::size_t word = line.find_first_not_of(' ', at);
    if (word == line.npos) break;
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::size_t needed = WidthOf(line.substr(at, end - at));
    if (!first && width + needed > columns) {
      out.append("\n").append(indent);
      width = indent.size();
      at = word;
      first = true;
      continue;
    }
    out += line.substr(at, end - at);
    width += needed;
    at = end;
    first = false;
  }
  return out;
}

void Append(std::string_view line, const Paint& paint, std::string* out) {
  if (!paint.all.empty()) {
    out->append(paint.all).append(line).append(kPlain);
  } else if (paint.size > 0 && paint.size <= line.size()) {
    out->append(paint.label)
        .append(line.substr(0, paint.size))
        .append(kPlain)
        .append(line.substr(paint.size));
  } else {
    out->append(line);
  }
}

}  // namespace

std::string Message(std::string_view text, int columns, bool colour) {
  std::string out;
  bool first = true;
  for (const std::string_view line : Split(text, '\n')) {
    Paint paint = colour ? PaintOf(line) : Paint();
    const std::string broken = Broken(line, static_cast<std::size_t>(std::max(columns, 0)));
    for (const std::string_view piece : Split(broken, '\n')) {
      if (!first) out += '\n';
      first = false;
      Append(piece, paint, &out);
      paint.size = 0;  // only the first piece has a label
    }
  }
  return out;
}

}  // namespace dtrun::output
