// Parses numbers by the rules of std::from_chars: no sign '+', no blanks, no prefix. Pure; any thread.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/result.h"

namespace dtrun {

// Parses the number at the start of `*text` and removes it from there. Returns nullopt and leaves `*text`
// unchanged if there is no number or it does not fit. `base` applies to integers.
template <class Number, class... Base>
std::optional<Number> TakeNumber(std::string_view* text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number, base...);
  if (error != std::errc{}) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return number;
}

// Parses all of `text`. nullopt if it is not exactly one number, or does not fit.
template <class Number, class... Base>
std::optional<Number> NumberOf(std::string_view text, Base... base) {
  const std::optional<Number> number = TakeNumber<Number>(&text, base...);
  return text.empty() ? number : std::nullopt;
}

// Lists of numbers as the kernel and launchers write them: "0,4-7"; and of counts, "2(x3),1". Pure; any
// thread.

// The largest number that a list may hold.
inline constexpr int kLargestListed = 1'000'000;

// "0,4-7" for {0, 4, 5, 6, 7}. `numbers` must be ascending.
std::string NumberList(const std::vector<int>& numbers);

// Ascending, without duplicates. nullopt if `text` is not such a list or holds a number above
// kLargestListed.
std::optional<std::vector<int>> ReadNumberList(std::string_view text);

// Lists of counts in which a run of equal counts is written once, as in SLURM_TASKS_PER_NODE of srun(1):
// "2(x3),1" means {2, 2, 2, 1}.
std::string CountList(const std::vector<int>& counts);
// nullopt if `text` is not such a list, has a count below 1, or has more than `most` counts.
std::optional<std::vector<int>> ReadCountList(std::string_view text, std::size_t most);

// Durations and byte counts in human notation. Pure functions; any thread.

using Nanoseconds = std::chrono::nanoseconds;

// "500ms", "60s", "1.5m", "1h30m", "10us"; units are required. Not negative, at most 10 years.
Result<Nanoseconds> ParseDuration(std::string_view text);

// "64", "64K", "8MiB", "1GB"; K, M, G and T are powers of 1024, with or without B or iB.
Result<std::uint64_t> ParseBytes(std::string_view text);

// The likely meaning of a rejected spelling: "3s" for "3 secs", "4GB" for "4 gbytes"; empty if unclear.
std::string DurationMeant(std::string_view text);
std::string BytesMeant(std::string_view text);

// Shortest exact spelling: "1500ms", "60s", "2m".
std::string FormatDuration(Nanoseconds duration);
// Shortest exact spelling: "64KiB", "1000".
std::string FormatBytes(std::uint64_t bytes);

}  // namespace dtrun
