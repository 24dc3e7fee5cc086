// Durations and byte counts in human notation. Pure functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun {

using Nanoseconds = std::chrono::nanoseconds;

// "500ms", "60s", "1.5m", "2h", "10us"; the unit is required. Not negative, at most 10 years.
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
