// How long the backend took, apart from what a loaded machine has held up.
//
// A thread of each Stopwatch sleeps in short steps and adds up how late it wakes; what the machine does to
// it, it does to the backend's threads. Made and asked by one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace dtrun::conformance {

// The bounds of docs/abi.md: what a backend may take on an idle machine.
inline constexpr std::chrono::seconds kDeadlineBound{1};  // F1: from an operation's deadline to its end
inline constexpr std::chrono::seconds kAbortBound{2};     // F6
inline constexpr std::chrono::seconds kDeathBound{
    5};  // F4: from a rank's end to that of operations that need it
inline constexpr std::chrono::seconds kDestroyBound{12};  // B21

class Stopwatch {
 public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Expects that `least` have passed since it was made, and no more than `least` and `bound`. `what`: "an
  // operation with a deadline of 1 s (F1)".
  void ExpectBetween(std::chrono::nanoseconds least, std::chrono::nanoseconds bound, const char* what) const;
  void ExpectWithin(std::chrono::nanoseconds bound, const char* what) const {
    ExpectBetween({}, bound, what);
  }

 private:
  using Clock = std::chrono::steady_clock;
  void Sleep();

  const Clock::time_point start_ = Clock::now();
  std::atomic<std::int64_t> late_ns_{0};
  std::atomic<std::int64_t> due_ns_{INT64_MAX};  // when it is to wake
  std::atomic<bool> over_{false};
  std::thread sleeper_;
};

}  // namespace dtrun::conformance
