// Points in time by which something must have happened. Pure; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::ucx_plugin {

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNever = Clock::time_point::max();

// `timeout` from now; negative: never.
inline Clock::time_point After(sdk::Nanoseconds timeout) {
  if (timeout.count() < 0 || timeout > std::chrono::hours(24 * 3650)) return kNever;
  return Clock::now() + timeout;
}

// "60 s", "1.5 s", "200 ms".
inline std::string DurationText(sdk::Nanoseconds duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
  std::string text = std::to_string(milliseconds / 1000);
  if (milliseconds % 1000 != 0) text.append(1, '.').append(std::to_string(milliseconds % 1000 / 100));
  return text + " s";
}

}  // namespace dtrun::ucx_plugin
