// deadline.hpp - a point in time by which something must have happened, or no limit.
//
// Values and pure functions; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "dtrun/plugin/services.hpp"

namespace dtrun::sdk {
inline namespace v0 __attribute__((visibility("hidden"))) {

  class Deadline {
   public:
    using Clock = std::chrono::steady_clock;

    // Never.
    Deadline() = default;
    // `timeout` from now; negative, or ten years and more: never.
    explicit Deadline(Nanoseconds timeout) {
      if (timeout.count() < 0 || timeout >= kForever) return;
      at_ = Clock::now() + timeout;
      timeout_ = timeout;
    }

    // Clock::time_point::max() when it never comes, so deadlines compare by it.
    Clock::time_point at() const { return at_; }
    // What it was made of; kNoLimit when it never comes.
    Nanoseconds timeout() const { return timeout_; }
    bool never() const { return at_ == Clock::time_point::max(); }
    bool passed() const { return !never() && Clock::now() >= at_; }

    // This one, but not before `least` from now.
    Deadline AtLeast(Nanoseconds least) const {
      Deadline other = *this;
      other.at_ = std::max(at_, Clock::now() + least);
      return other;
    }
    // `span` from now, or this deadline when that is earlier.
    Clock::time_point Soon(Nanoseconds span) const { return std::min(at_, Clock::now() + span); }

    // Time left, at least 0; kNoLimit for a deadline that never comes.
    Nanoseconds Left() const {
      return never() ? kNoLimit : std::max<Nanoseconds>(at_ - Clock::now(), Nanoseconds(0));
    }
    // The same rounded up, for libraries that count so; ten years when it never comes.
    std::chrono::milliseconds LeftMilliseconds() const {
      return std::chrono::ceil<std::chrono::milliseconds>(never() ? kForever : Left());
    }

   private:
    static constexpr Nanoseconds kForever = std::chrono::hours(24 * 3650);
    Clock::time_point at_ = Clock::time_point::max();
    Nanoseconds timeout_ = kNoLimit;
  };

  // "60 s", "1.5 s", "200 ms".
  inline std::string DurationText(Nanoseconds duration) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
    if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
    std::string text = std::to_string(milliseconds / 1000);
    if (milliseconds % 1000 != 0) text.append(1, '.').append(std::to_string(milliseconds % 1000 / 100));
    return text + " s";
  }

}  // namespace v0
}  // namespace dtrun::sdk
