// dtrun/plugin/patience.hpp - backoff for a thread that polls: it yields at first, then sleeps longer and
// longer.
//
// Not part of plugin.hpp. For a vendor library that can only be polled. Owned by the one thread that waits.
#pragma once

#include <algorithm>
#include <thread>

#include "dtrun/plugin/deadline.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class Patience {
   public:
    // Yields `yields` times, then sleeps: `shortest` at first, twice as long each time, at most `longest`.
    explicit Patience(int yields = 64, Nanoseconds shortest = std::chrono::microseconds(10),
                      Nanoseconds longest = std::chrono::milliseconds(1))
        : yields_(yields), shortest_(shortest), longest_(longest) {}

    // Yields or sleeps once, not past `deadline`.
    void Wait(const Deadline& deadline) {
      if (looks_ < yields_) {
        ++looks_;
        std::this_thread::yield();
        return;
      }
      std::this_thread::sleep_for(deadline.never() ? pause_ : std::min(pause_, deadline.Left()));
      pause_ = std::min(pause_ * 2, longest_);
    }
    // Something has happened: the next pause is a short one again.
    void Reset() { pause_ = shortest_; }

   private:
    const int yields_;
    const Nanoseconds shortest_;
    const Nanoseconds longest_;
    int looks_ = 0;
    Nanoseconds pause_ = shortest_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
