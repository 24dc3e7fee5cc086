#include "tools/bench/program/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::bench {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;

Result<std::uint64_t> ParseSize(std::string_view text, std::string_view whole) {
  const Result<std::uint64_t> bytes = ParseBytes(text);
  if (!bytes) return Error{DTRUN_INVALID_ARGUMENT, fmt::format("sizes '{}': {}", whole, bytes.error().text)};
  if (*bytes >= 1 && *bytes <= kLargest) return *bytes;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("sizes '{}': '{}' is not between 1 byte and 1T", whole, text)};
}

}  // namespace

Result<std::vector<std::uint64_t>> ParseSizes(std::string_view text, std::uint64_t factor) {
  if (factor < 2) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("factor {} would never reach the last size; give 2 or more", factor)};
  }
  std::vector<std::uint64_t> sizes;
  for (const std::string_view item : Split(text, ',')) {
    const std::size_t colon = item.find(':');
    const auto first = ParseSize(item.substr(0, colon), text);
    if (!first) return first.error();
    const auto last = colon == item.npos ? first : ParseSize(item.substr(colon + 1), text);
    if (!last) return last.error();
    if (*first > *last) {
      return Error{
          DTRUN_INVALID_ARGUMENT,
          fmt::format("sizes '{}' run from large to small; write the smaller one first, as in 8:64M", text)};
    }
    for (std::uint64_t size = *first; size <= *last; size *= factor) {
      sizes.push_back(size);
      if (size > *last / factor) break;
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace dtrun::bench
