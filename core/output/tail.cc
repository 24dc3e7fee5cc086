#include "core/output/tail.h"

#include <algorithm>

#include "core/output/display.h"

namespace dtrun::output {
namespace {

constexpr std::string_view kCutMark = " …";
// Text is dropped in batches of this size, so that a line costs one copy and no move.
constexpr std::size_t kSlack = 4 * Tail::kBytes;

}  // namespace

void Tail::Append(std::string_view line) {
  if (line.size() > kLineBytes) {
    text_.append(line.substr(0, CutPoint(line, kLineBytes - kCutMark.size()))).append(kCutMark);
  } else {
    text_.append(line);
  }
  text_ += '\n';
  // Empty lines count as no text but take a byte here, hence twice kBytes.
  if (text_.size() > 2 * kBytes + kSlack) text_.erase(0, text_.find('\n', text_.size() - 2 * kBytes) + 1);
}

std::vector<std::string> Tail::Last(std::size_t count) const {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  std::string_view rest = text_;
  while (!rest.empty() && lines.size() < count) {
    rest.remove_suffix(1);
    const std::size_t newline = rest.rfind('\n');
    const std::string_view line = rest.substr(newline == rest.npos ? 0 : newline + 1);
    bytes += line.size();
    if (bytes > kBytes) break;
    lines.emplace_back(line);
    rest.remove_suffix(line.size());
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace dtrun::output
