#include "stopwatch.h"

#include <gtest/gtest.h>

#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::conformance {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kStep{5};
constexpr std::chrono::milliseconds kUsual{2};  // that a sleeper is late on an idle machine
// A backend needs several threads, and several processes, to run one after another.
constexpr int kHops = 4;

double Seconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Stopwatch::Stopwatch() {
  const sdk::BlockSignals block;
  sleeper_ = std::thread([this] { Sleep(); });
}

Stopwatch::~Stopwatch() {
  over_ = true;
  sleeper_.join();
}

void Stopwatch::Sleep() {
  while (!over_) {
    const auto due = Clock::now() + kStep;
    due_ns_ = nanoseconds(due.time_since_epoch()).count();
    std::this_thread::sleep_until(due);
    const auto late = Clock::now() - due;
    if (late > kUsual) late_ns_ += nanoseconds(late).count();
  }
}

void Stopwatch::ExpectBetween(nanoseconds least, nanoseconds bound, const char* what) const {
  const nanoseconds now = Clock::now().time_since_epoch(), took = now - start_.time_since_epoch();
  const nanoseconds asleep = now - nanoseconds(due_ns_);  // it may not have woken yet
  const nanoseconds late = nanoseconds(late_ns_) + (asleep > kUsual ? asleep : nanoseconds(0));
  const nanoseconds allowed = least + bound, more = kHops * late;
  if (took < least) ADD_FAILURE() << what << " ended after " << Seconds(took) << " s, too early";
  if (took > allowed + more)
    ADD_FAILURE() << what << " took " << Seconds(took) << " s; " << Seconds(allowed) << " s are allowed, and "
                  << Seconds(more) << " s more because this machine is busy";
}

}  // namespace dtrun::conformance
