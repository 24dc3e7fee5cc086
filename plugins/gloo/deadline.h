// A point in time by which something must have happened, or none. A value; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::gloo_plugin {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Never.
  Deadline() = default;
  // `timeout` from now; negative: never.
  explicit Deadline(sdk::Nanoseconds timeout) {
    if (timeout.count() >= 0) at_ = timeout < kForever ? Clock::now() + timeout : Clock::time_point::max();
  }

  bool never() const { return at_ == Clock::time_point::max(); }
  Clock::time_point at() const { return at_; }
  bool passed() const { return !never() && Clock::now() >= at_; }
  // This one, but not before `least` from now.
  Deadline AtLeast(sdk::Nanoseconds least) const {
    Deadline other = *this;
    other.at_ = std::max(at_, Clock::now() + least);
    return other;
  }

  // What is left, not negative; sdk::kNoLimit when it never comes.
  sdk::Nanoseconds Left() const {
    return never() ? sdk::kNoLimit : std::max<sdk::Nanoseconds>(at_ - Clock::now(), sdk::Nanoseconds(0));
  }
  // In Gloo's unit, rounded up; ten years when it never comes.
  std::chrono::milliseconds LeftMilliseconds() const {
    return std::chrono::ceil<std::chrono::milliseconds>(never() ? kForever : Left());
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

}  // namespace dtrun::gloo_plugin
