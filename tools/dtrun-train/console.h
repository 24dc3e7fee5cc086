// What rank 0 shows while it trains. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace dtrun::train {

// "epoch 3/5  loss 0.3412  test accuracy 0.8702  51234 samples/s".
std::string EpochLine(std::uint64_t epoch, std::uint64_t epochs, double loss, double accuracy,
                      double samples_per_second);
// "epoch 3/5   42%  loss 0.3412  51234 samples/s".
std::string ProgressLine(std::uint64_t epoch, std::uint64_t epochs, std::uint64_t done, std::uint64_t total,
                         double loss, double samples_per_second);

class Console {
 public:
  using Clock = std::chrono::steady_clock;

  // `redraw`: somebody watches, so progress may overwrite itself; else it is left out.
  // `out` is borrowed.
  Console(std::FILE* out, bool redraw) : out_(out), redraw_(redraw) {}

  // True at most ten times a second, and never without redraw: then call Progress.
  bool Due(Clock::time_point now);
  void Progress(const std::string& text);
  // A line of its own, instead of any progress shown. Reaches the reader at once.
  void Line(const std::string& text);

 private:
  std::FILE* out_;
  bool redraw_;
  bool shown_ = false;  // a progress text stands on the last line
  Clock::time_point next_{};
};

// What DTRUN_CONSOLE says, or whether stdout is a terminal when dtrun did not start us.
bool WantsRedraw();

}  // namespace dtrun::train
