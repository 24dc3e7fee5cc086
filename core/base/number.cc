#include "core/base/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/text.h"

namespace dtrun {
namespace {

struct TimeUnit {
  std::string_view name;
  std::int64_t ns;
};
constexpr std::array<TimeUnit, 6> kTimeUnits = {{{"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};
constexpr double kTenYearsNs = 3.2e17;
constexpr double kMostBytes = 0x1p63;
constexpr std::array<std::string_view, 5> kByteUnits = {"", "K", "M", "G", "T"};

// Splits "1.5ms" into 1.5 and "ms". False when there is no leading number.
bool SplitNumber(std::string_view text, double* number, std::string_view* unit) {
  *number = TakeNumber<double>(&text).value_or(-1);
  if (!std::isfinite(*number) || *number < 0) return false;
  *unit = text;
  while (!unit->empty() && unit->front() == ' ') unit->remove_prefix(1);
  return true;
}

}  // namespace

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
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
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

Result<Nanoseconds> ParseDuration(std::string_view text) {
  double number = 0, ns = 0;
  std::string_view left = text, unit;
  while (SplitNumber(left, &number, &unit)) {
    left = unit.substr(std::min(unit.size(), unit.find_first_of("0123456789")));
    unit.remove_suffix(left.size());
    if (!left.empty()) unit = Trim(unit);
    const auto known = std::ranges::find(kTimeUnits, unit, &TimeUnit::name);
    if (known == kTimeUnits.end()) break;
    ns += number * static_cast<double>(known->ns);
    if (left.empty() && ns <= kTenYearsNs) return Nanoseconds(std::llround(ns));
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "'{}' is not a duration; write a number and a unit: 500ms, 60s, 2m, 1h30m", text);
}

Result<std::uint64_t> ParseBytes(std::string_view text) {
  double number = 0;
  std::string_view unit;
  if (SplitNumber(text, &number, &unit)) {
    if (unit.ends_with("iB")) {
      unit.remove_suffix(2);
    } else if (unit.ends_with("B")) {
      unit.remove_suffix(1);
    }
    double scale = 1;
    for (std::string_view candidate : kByteUnits) {
      if (unit == candidate && number * scale < kMostBytes) return static_cast<std::uint64_t>(number * scale);
      scale *= 1024;
    }
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' is not a size; write a number and a unit: 64, 64K, 8MiB, 1G",
                   text);
}

std::string DurationMeant(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"milli", "ms"}, {"ms", "ms"}, {"micro", "us"}, {"s", "s"},
      {"min", "m"},    {"h", "h"},   {"us", "us"},    {"ns", "ns"}};
  double number = 0;
  std::string_view unit;
  if (!SplitNumber(text, &number, &unit)) return {};
  if (unit.empty()) return fmt::format("{}s", text);
  const std::string word = Lowercase(unit);
  if (word == "d" || word == "day" || word == "days") return fmt::format("{}h", number * 24);
  if (word.find_first_of("0123456789") != word.npos) return {};
  for (const auto& [begin, meant] : kWords) {
    if (word.starts_with(begin)) return fmt::format("{}{}", number, meant);
  }
  return {};
}

std::string BytesMeant(std::string_view text) {
  double number = 0;
  std::string_view unit;
  if (!SplitNumber(text, &number, &unit) || unit.empty()) return {};
  const std::string word = Lowercase(unit);
  const bool named = word.find('b') != word.npos || word.starts_with("meg") || word.starts_with("gig");
  if (!named || std::string_view("kmgt").find(word[0]) == std::string_view::npos) return {};
  return fmt::format("{}{}{}", number, ToUpper(word[0]), word.substr(1, 2) == "ib" ? "iB" : "B");
}

std::string FormatDuration(Nanoseconds duration) {
  const std::int64_t ns = duration.count();
  if (ns == 0) return "0s";
  for (const TimeUnit& unit : kTimeUnits) {
    if (ns % unit.ns == 0) return fmt::format("{}{}", ns / unit.ns, unit.name);
  }
  return fmt::format("{}ns", ns);
}

std::string FormatBytes(std::uint64_t bytes) {
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kByteUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}{}", bytes, kByteUnits[unit], unit == 0 ? "" : "iB");
}

}  // namespace dtrun
