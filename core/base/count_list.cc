#include "core/base/count_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"

namespace dtrun {

std::string CountList(const std::vector<int>& counts) {
  std::string out;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto last = std::find_if(first, counts.end(), [&](int count) { return count != *first; });
    out += fmt::format("{}{}", out.empty() ? "" : ",", *first);
    if (last - first > 1) out += fmt::format("(x{})", last - first);
    first = last;
  }
  return out;
}

std::optional<std::vector<int>> ReadCountList(std::string_view text, std::size_t most) {
  constexpr std::string_view kTimes = "(x";
  std::vector<int> counts;
  for (;;) {
    const auto count = TakeNumber<int>(&text);
    std::optional<std::size_t> times = 1;
    if (text.starts_with(kTimes)) {
      text.remove_prefix(kTimes.size());
      times = TakeNumber<std::size_t>(&text);
      if (!text.starts_with(')')) return std::nullopt;
      text.remove_prefix(1);
    }
    if (!count || *count < 1 || !times || *times < 1 || *times > most - counts.size()) return std::nullopt;
    counts.insert(counts.end(), *times, *count);
    if (text.empty()) return counts;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

}  // namespace dtrun
