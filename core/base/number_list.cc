#include "core/base/number_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun {

std::string NumberList(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += std::to_string(numbers[first]);
    if (last > first) out.append("-").append(std::to_string(numbers[last]));
    first = last + 1;
  }
  return out;
}

std::optional<std::vector<int>> ReadNumberList(std::string_view text) {
  std::vector<int> numbers;
  for (std::string_view piece : Split(text, ',')) {
    piece = Trim(piece);
    const std::optional<int> first = TakeNumber<int>(&piece);
    std::optional<int> last = first;
    if (first && piece.starts_with('-')) last = NumberOf<int>(piece.substr(1));
    if (!first || !last || (!piece.empty() && piece.front() != '-')) return std::nullopt;
    if (*first < 0 || *last < *first || *last > kLargestListed) return std::nullopt;
    if (numbers.size() + static_cast<std::size_t>(*last - *first) > kLargestListed) return std::nullopt;
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  const auto [end, none] = std::ranges::unique(numbers);
  numbers.erase(end, none);
  return numbers;
}

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
