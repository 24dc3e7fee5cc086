#include "core/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "core/base/number.h"
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

Result<Nanoseconds> ParseDuration(std::string_view text) {
  double number = 0;
  std::string_view unit;
  if (SplitNumber(text, &number, &unit)) {
    for (const TimeUnit& candidate : kTimeUnits) {
      if (unit != candidate.name) continue;
      const double ns = number * static_cast<double>(candidate.ns);
      if (ns > kTenYearsNs) break;
      return Nanoseconds(std::llround(ns));
    }
  }
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("'{}' is not a duration; write a number and a unit: 500ms, 60s, 2m, 1h", text)};
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
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("'{}' is not a size; write a number and a unit: 64, 64K, 8MiB, 1G", text)};
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
