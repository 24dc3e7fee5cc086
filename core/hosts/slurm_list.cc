#include "core/hosts/slurm_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/hosts/host_slots.h"

namespace dtrun::hosts {
namespace {

constexpr std::size_t kMaxItemBytes = 320;  // a user of 64, '@', and a host of 255
constexpr std::size_t kMaxDigits = 9;       // numbers below fit an int

// Of a list that is too long to show, its beginning.
Error Bad(std::string_view text, std::string_view cause) {
  constexpr std::size_t kShown = 80;
  if (text.size() > kShown)
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("'{}...': {}", text.substr(0, kShown), cause)};
  return Error{DTRUN_INVALID_ARGUMENT, fmt::format("'{}': {}", text, cause)};
}

std::optional<int> Number(std::string_view text) {
  if (text.size() > kMaxDigits || !IsDigits(text)) return std::nullopt;
  return NumberOf<int>(text);
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

// Adds what one element of a bracket stands for: "07-09", "3", "a".
Status AddElement(std::string_view whole, std::string_view element, std::vector<std::string>* out) {
  if (element.empty()) return Bad(whole, "an empty element in brackets");
  const std::size_t dash = element.find('-');
  const auto first = Number(element.substr(0, dash));
  if (dash == std::string_view::npos || !first) {
    out->emplace_back(element);
    return {};
  }
  const auto last = Number(element.substr(dash + 1));
  if (!last)
    return Bad(whole, fmt::format("range '{}' has no last number of at most {} digits", element, kMaxDigits));
  if (*last < *first) return Bad(whole, fmt::format("range '{}' runs backwards", element));
  if (out->size() + static_cast<std::size_t>(*last - *first) >= kMaxHosts) {
    return Bad(whole, fmt::format("brackets with more than {} hosts", kMaxHosts));
  }
  for (int i = *first; i <= *last; ++i) out->push_back(fmt::format("{:0{}}", i, dash));
  return {};
}

// Every name so far, followed by every ending.
Status Multiply(std::string_view whole, const std::vector<std::string>& endings,
                std::vector<std::string>* names) {
  if (names->size() * endings.size() > kMaxHosts)
    return Bad(whole, fmt::format("more than {} hosts", kMaxHosts));
  const auto longest = [](const std::vector<std::string>& all) {
    return std::ranges::max(all, {}, &std::string::size).size();
  };
  if (longest(*names) + longest(endings) > kMaxItemBytes) {
    return Bad(whole.substr(0, kMaxItemBytes),
               fmt::format("a name of more than {} characters", kMaxItemBytes));
  }
  std::vector<std::string> out;
  for (const std::string& name : *names) {
    for (const std::string& ending : endings) out.push_back(name + ending);
  }
  *names = std::move(out);
  return {};
}

Result<std::vector<std::string>> ExpandItem(std::string_view item) {
  if (item.empty()) return Bad(item, "an empty name between commas");
  std::vector<std::string> names = {""};
  for (std::string_view rest = item; !rest.empty();) {
    std::vector<std::string> endings;
    if (rest.front() == '[') {
      const std::size_t close = rest.find(']');
      if (close == std::string_view::npos) return Bad(item, "a '[' is not closed");
      for (std::string_view element : SplitOutside(rest.substr(1, close - 1))) {
        if (Status added = AddElement(item, element, &endings); !added) return added.error();
      }
      rest.remove_prefix(close + 1);
    } else {
      endings.emplace_back(rest.substr(0, rest.find('[')));
      rest.remove_prefix(endings.back().size());
    }
    if (Status grown = Multiply(item, endings, &names); !grown) return grown.error();
  }
  for (const std::string& name : names) {
    if (Status valid = CheckHostName(name); !valid) return Bad(item, valid.error().text);
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> ExpandNodelist(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view item : SplitOutside(text)) {
    auto part = ExpandItem(item);
    if (!part) return part.error();
    if (names.size() + part->size() > kMaxHosts)
      return Bad(item, fmt::format("more than {} hosts", kMaxHosts));
    std::ranges::move(*part, std::back_inserter(names));
  }
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return Bad(text, fmt::format("host '{}' is in it twice", *twice));
  }
  return names;
}

Result<std::vector<int>> ExpandCounts(std::string_view text) {
  std::vector<int> counts;
  for (std::string_view item : SplitOutside(text)) {
    const std::size_t open = item.find("(x");
    const auto count = Number(item.substr(0, open));
    std::optional<int> times = 1;
    if (open != std::string_view::npos) {
      times = item.ends_with(')') ? Number(item.substr(open + 2, item.size() - open - 3)) : std::nullopt;
    }
    if (!count || !times || *times < 1) return Bad(item, "not a count per node, such as '4' or '4(x2)'");
    if (counts.size() + static_cast<std::size_t>(*times) > kMaxHosts) {
      return Bad(item, fmt::format("counts of more than {} nodes", kMaxHosts));
    }
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
  }
  return counts;
}

std::string CompressCounts(const std::vector<int>& counts) {
  std::string out;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto last = std::find_if(first, counts.end(), [&](int count) { return count != *first; });
    if (!out.empty()) out += ',';
    out += std::to_string(*first);
    if (last - first > 1) out += fmt::format("(x{})", last - first);
    first = last;
  }
  return out;
}

}  // namespace dtrun::hosts
