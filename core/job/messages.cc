#include "core/job/messages.h"

#include <chrono>
#include <csignal>
#include <string>
#include <utility>

#include "core/failures/table.h"
#include "core/output/display.h"
#include "core/output/message.h"
#include "core/process/user_signals.h"

namespace dtrun::job {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{250};  // interval of signal checks while output is read
// Time for writing queued output after the job was asked to end.
constexpr std::chrono::seconds kFlush{5};

bool EndsWaiting(process::Lifeline& lifeline) {
  const int signal = lifeline.Next();
  if (signal == SIGTSTP) lifeline.Stopped();
  return signal == process::Lifeline::kGuardGone || process::UserSignals::EndsJob(signal);
}

}  // namespace

void Messages::Say(std::string_view text) {
  constexpr auto kStream = output::Stream::kErr;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const bool terminal = console_.terminal(kStream);
  console_.Line(kStream, output::Message(output::TamedMessage(text), terminal ? console_.columns(kStream) : 0,
                                         output::WantsColour(style_.colour, terminal)));
}

void Messages::Note(const Status& written) {
  if (!written) Say("dtrun: " + written.error().text);
}

bool Messages::NoteEvent(const Status& written) {
  if (!written && !std::exchange(told_event_, true)) Note(written);
  return written.ok();
}

void Messages::TellUnreadFailures() {
  if (std::exchange(told_unread_, true)) return;
  const auto known = failures::Known();
  for (const std::string& problem : known->problems()) Say("dtrun: known failures: " + problem);
}

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
