// dtrun/plugin/patience.hpp - how long to sleep between two looks at something that has not happened yet: not
// at all at first, then longer and longer.
//
// Not part of plugin.hpp. For a vendor library that can only be asked. One waiting thread owns it.
#pragma once

#include <algorithm>
#include <thread>

#include "dtrun/plugin/deadline.hpp"

namespace dtrun::sdk {
inline namespace v0 __attribute__((visibility("hidden"))) {

  class Patience {
   public:
    // Gives the processor up `yields` times, then sleeps, `shortest` at first and `longest` in the end.
    explicit Patience(int yields = 64, Nanoseconds shortest = std::chrono::microseconds(10),
                      Nanoseconds longest = std::chrono::milliseconds(1))
        : yields_(yields), shortest_(shortest), longest_(longest) {}

    // Sleeps, but not past `deadline`.
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

}  // namespace v0
}  // namespace dtrun::sdk
