// A point in time by which something must have happened, or none. A value; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  // Never.
  Deadline() = default;
  // `timeout` from now; negative: never.
  explicit Deadline(sdk::Nanoseconds timeout) {
    if (timeout.count() >= 0 && timeout < kForever) at_ = Clock::now() + timeout;
  }

  bool passed() const { return at_ != Clock::time_point::max() && Clock::now() >= at_; }
  // What is left, not negative; sdk::kNoLimit when it never comes.
  sdk::Nanoseconds Left() const {
    if (at_ == Clock::time_point::max()) return sdk::kNoLimit;
    return std::max<sdk::Nanoseconds>(at_ - Clock::now(), sdk::Nanoseconds(0));
  }

 private:
  static constexpr sdk::Nanoseconds kForever = std::chrono::hours(24 * 3650);
  Clock::time_point at_ = Clock::time_point::max();
};

// "60 s", "1.5 s", "200 ms".
inline std::string DurationText(sdk::Nanoseconds duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
  std::string text = std::to_string(milliseconds / 1000);
  if (milliseconds % 1000 != 0) text.append(1, '.').append(std::to_string(milliseconds % 1000 / 100));
  return text + " s";
}

}  // namespace dtrun::nccl_plugin
