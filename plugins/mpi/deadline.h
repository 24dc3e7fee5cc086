// A point in time by which something must have happened, or none. A value; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Never.
  Deadline() = default;
  // `timeout` from now; negative: never.
  explicit Deadline(sdk::Nanoseconds timeout) {
    if (timeout.count() < 0 || timeout >= kForever) return;
    at_ = Clock::now() + timeout;
  }

  bool never() const { return at_ == Clock::time_point::max(); }
  bool passed() const { return !never() && Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }
  // What is left, not negative; sdk::kNoLimit when it never comes.
  sdk::Nanoseconds Left() const {
    return never() ? sdk::kNoLimit : std::max<sdk::Nanoseconds>(at_ - Clock::now(), sdk::Nanoseconds(0));
  }
  // `span` from now, or this deadline when that is earlier.
  Clock::time_point Soon(sdk::Nanoseconds span) const { return std::min(at_, Clock::now() + span); }

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

}  // namespace dtrun::mpi_plugin
