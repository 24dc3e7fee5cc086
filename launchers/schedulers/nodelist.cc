#include "launchers/schedulers/nodelist.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMaxDigits = 9;  // numbers below fit an int

// Of a list that is too long to show, its beginning.
[[noreturn]] void Refuse(std::string_view text, const std::string& cause) {
  constexpr std::size_t kShown = 80;
  const std::string shown =
      text.size() > kShown ? std::string(text.substr(0, kShown)) + "..." : std::string(text);
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "'" + shown + "': " + cause);
}

std::string MoreHosts() { return "more than " + std::to_string(kMaxHosts) + " hosts"; }

std::optional<int> ShortNumber(std::string_view text) {
  return text.empty() || text.size() > kMaxDigits ? std::nullopt : NumberOf(text);
}

// Splits at commas outside of brackets. Empty parts stay.
std::vector<std::string_view> SplitOutside(std::string_view text) {
  std::vector<std::string_view> parts;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string Padded(int number, std::size_t width) {
  std::string text = std::to_string(number);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// Adds what one element of a bracket stands for: "07-09", "3", "a".
void AddElement(std::string_view whole, std::string_view element, std::vector<std::string>* out) {
  if (element.empty()) Refuse(whole, "an empty element in brackets");
  const std::size_t dash = element.find('-');
  const auto first = ShortNumber(element.substr(0, dash));
  if (dash == std::string_view::npos || !first) {
    out->emplace_back(element);
    return;
  }
  const std::string range = "range '" + std::string(element.substr(0, 2 * kMaxDigits + 1)) + "'";
  const auto last = ShortNumber(element.substr(dash + 1));
  if (!last)
    Refuse(whole, range + " has no last number of at most " + std::to_string(kMaxDigits) + " digits");
  if (*last < *first) Refuse(whole, range + " runs backwards");
  if (out->size() + static_cast<std::size_t>(*last - *first) >= kMaxHosts)
    Refuse(whole, "brackets with " + MoreHosts());
  for (int i = *first; i <= *last; ++i) out->push_back(Padded(i, dash));
}

std::size_t LongestOf(const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  return longest;
}

// Every name so far, followed by every ending.
void Multiply(std::string_view whole, const std::vector<std::string>& endings,
              std::vector<std::string>* names) {
  if (names->size() * endings.size() > kMaxHosts) Refuse(whole, MoreHosts());
  if (LongestOf(*names) + LongestOf(endings) > kMaxNameBytes)
    Refuse(whole, "a name of more than " + std::to_string(kMaxNameBytes) + " characters");
  std::vector<std::string> out;
  for (const std::string& name : *names) {
    for (const std::string& ending : endings) out.push_back(name + ending);
  }
  *names = std::move(out);
}

std::vector<std::string> ExpandItem(std::string_view item) {
  if (item.empty()) Refuse(item, "an empty name between commas");
  std::vector<std::string> names = {""};
  for (std::string_view rest = item; !rest.empty();) {
    std::vector<std::string> endings;
    if (rest.front() == '[') {
      const std::size_t close = rest.find(']');
      if (close == std::string_view::npos) Refuse(item, "a '[' is not closed");
      for (const std::string_view element : SplitOutside(rest.substr(1, close - 1)))
        AddElement(item, element, &endings);
      rest.remove_prefix(close + 1);
    } else {
      endings.emplace_back(rest.substr(0, rest.find('[')));
      rest.remove_prefix(endings.back().size());
    }
    Multiply(item, endings, &names);
  }
  for (const std::string& name : names) {
    if (!IsHostName(name)) Refuse(item, "'" + name + "' is not a host name");
  }
  return names;
}

}  // namespace

std::vector<std::string> ExpandNodelist(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view item : SplitOutside(text)) {
    std::vector<std::string> part = ExpandItem(item);
    if (names.size() + part.size() > kMaxHosts) Refuse(item, MoreHosts());
    std::move(part.begin(), part.end(), std::back_inserter(names));
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    Refuse(text, "host '" + *twice + "' is in it twice");
  return names;
}

std::vector<int> ExpandCounts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string_view item : SplitOutside(text)) {
    const std::size_t open = item.find("(x");
    const auto count = ShortNumber(item.substr(0, open));
    std::optional<int> times = 1;
    if (open != std::string_view::npos) {
      times = item.back() == ')' ? ShortNumber(item.substr(open + 2, item.size() - open - 3)) : std::nullopt;
    }
    if (!count || !times || *times < 1) Refuse(item, "not a count per node, such as '4' or '4(x2)'");
    if (counts.size() + static_cast<std::size_t>(*times) > kMaxHosts)
      Refuse(item, "counts of " + MoreHosts());
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
  }
  return counts;
}

std::string CompressCounts(const std::vector<int>& counts) {
  std::string out;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto last = std::find_if(first, counts.end(), [&](int count) { return count != *first; });
    out += (out.empty() ? "" : ",") + std::to_string(*first);
    if (last - first > 1) out += "(x" + std::to_string(last - first) + ")";
    first = last;
  }
  return out;
}

}  // namespace dtrun::schedulers
