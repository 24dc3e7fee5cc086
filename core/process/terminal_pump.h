// Carries what is typed at a terminal to a pipe: in the foreground only, and only what a process below this one waits
// for (pipe_readers.h). The rest stays at the terminal, for the shell that this process was started from.
//
// Owned by the guard's poll loop; one thread. The pipe holds at most one read of the terminal, a line as a rule. The
// pump looks for a reader only while something is typed, in growing intervals.
#pragma once

#include <poll.h>

#include <chrono>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

class TerminalPump {
 public:
  // `terminal` stays the caller's. The other end of the pipe is at reader().
  static Result<TerminalPump> Open(int terminal);

  UniqueFd& reader() { return reader_; }
  // What to poll for now; descriptor -1 when nothing.
  pollfd Wanted() const;
  // How long the poll may take, in milliseconds: until the next look. -1: no limit.
  int Patience() const;
  // After poll: `events` are those returned, 0 when the wait timed out.
  void Advance(short events);

 private:
  using Clock = std::chrono::steady_clock;

  void LookLater(Clock::time_point since);

  int terminal_ = -1;
  UniqueFd reader_, writer_;
  std::string pipe_;                     // its OpenFileLink
  std::chrono::milliseconds interval_{0};  // of looks; 0: nothing is typed, as far as is known
  Clock::time_point next_look_{};
};

}  // namespace dtrun::process
