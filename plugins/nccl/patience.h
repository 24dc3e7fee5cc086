// How long to sleep between two looks at something that has not happened yet: not at all at
// first, then longer and longer. One waiting thread owns it.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

class Patience {
 public:
  // Sleeps, but not past `deadline`.
  void Wait(const sdk::Deadline& deadline) {
    if (looks_ < kYields) {
      ++looks_;
      std::this_thread::yield();
      return;
    }
    sdk::Nanoseconds pause = pause_;
    if (const sdk::Nanoseconds left = deadline.Left(); left.count() >= 0) pause = std::min(pause, left);
    std::this_thread::sleep_for(pause);
    pause_ = std::min<sdk::Nanoseconds>(pause_ * 2, kLongest);
  }

 private:
  static constexpr int kYields = 64;
  static constexpr sdk::Nanoseconds kLongest = std::chrono::milliseconds(1);

  int looks_ = 0;
  sdk::Nanoseconds pause_ = std::chrono::microseconds(10);
};

}  // namespace dtrun::nccl_plugin
