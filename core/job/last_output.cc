#include "core/job/last_output.h"

#include <chrono>
#include <csignal>

namespace dtrun::job {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{250};  // interval of signal checks while output is read
// Time for writing queued output after the job was asked to end.
constexpr std::chrono::seconds kFlush{5};

bool EndsWaiting(process::Lifeline& lifeline) {
  switch (lifeline.Next()) {
    case process::Lifeline::kGuardGone:
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT: return true;
    case SIGTSTP: lifeline.Stopped(); return false;
    default: return false;
  }
}

}  // namespace

std::uint64_t ShowTheRest(output::Console& console, process::Lifeline& lifeline, bool ended) {
  auto deadline = ended ? SteadyClock::now() + kFlush : SteadyClock::time_point::max();
  while (SteadyClock::now() < deadline) {
    const auto begin = SteadyClock::now();
    constexpr auto kLookMs = static_cast<int>(kLook.count());
    if (console.Drain(kLookMs, kLookMs)) return 0;
    if (SteadyClock::now() - begin < kLook) return 0;  // the reader has stopped
    if (!EndsWaiting(lifeline)) continue;
    if (ended) break;  // second request to end
    ended = true;
    deadline = SteadyClock::now() + kFlush;
  }
  return console.GiveUp();
}

}  // namespace dtrun::job
