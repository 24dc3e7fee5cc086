// deadline.hpp - a point in time by which something must have happened, or no limit.
//
// Values and pure functions; any thread unless a class says otherwise.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "dtrun/plugin/services.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  inline constexpr Nanoseconds kForever = std::chrono::hours(24 * 3650);

  // A time limit of the ABI: ten years and more are none, so that sums with the clock's time are within
  // bounds.
  constexpr Nanoseconds LimitOf(std::int64_t timeout_ns) {
    return timeout_ns < 0 || timeout_ns >= kForever.count() ? kNoLimit : Nanoseconds(timeout_ns);
  }

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
    Clock::time_point at_ = Clock::time_point::max();
    Nanoseconds timeout_ = kNoLimit;
  };

  // The deadline of a call. Reads the clock only when first asked, so a call that never waits never reads it.
  // One thread, until it has been started.
  class LazyDeadline {
   public:
    explicit LazyDeadline(std::int64_t timeout_ns) : timeout_ns_(timeout_ns) {}
    const Deadline& Start() {
      if (started_) return deadline_;
      deadline_ = Deadline(Nanoseconds(timeout_ns_));
      started_ = true;
      return deadline_;
    }
    bool Passed() { return timeout_ns_ >= 0 && Start().passed(); }
    // At most `most`, at least a moment.
    Nanoseconds Left(Nanoseconds most) {
      if (timeout_ns_ < 0 || Start().never()) return most;
      return std::max(Nanoseconds(1), std::min(most, Start().Left()));
    }
    std::int64_t timeout_ns() const { return timeout_ns_; }

   private:
    std::int64_t timeout_ns_;
    bool started_ = false;
    Deadline deadline_;
  };

  // "60 s", "1.5 s", "200 ms".
  inline std::string DurationText(Nanoseconds duration) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
    if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
    std::string text = std::to_string(milliseconds / 1000);
    if (milliseconds % 1000 != 0) text.append(1, '.').append(std::to_string(milliseconds % 1000 / 100));
    return text + " s";
  }

}  // namespace v1
}  // namespace dtrun::sdk
