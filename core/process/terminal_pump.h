// Forwards terminal input to a pipe, but only while dtrun is in the foreground and a descendant waits for
// input (pipe_readers.h). Other input stays at the terminal, for the shell that started this process.
//
// Owned by the guard's poll loop; one thread. The pipe holds at most one read of the terminal, usually one
// line. The pump looks for a reader only while there is input, at growing intervals.
#pragma once

#include <poll.h>

#include <chrono>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

class TerminalPump {
 public:
  // The caller keeps `terminal`. reader() is the read end of the pipe.
  static Result<TerminalPump> Open(int terminal);

  UniqueFd& reader() { return reader_; }
  // What to poll for now; descriptor -1: nothing.
  pollfd Wanted() const;
  // Poll timeout in milliseconds, until the next look. -1: no limit.
  int Patience() const;
  // Call after poll. `events`: the returned events, 0 after a timeout.
  void Advance(short events);

 private:
  using Clock = std::chrono::steady_clock;

  void LookLater(Clock::time_point since);

  int terminal_ = -1;
  UniqueFd reader_, writer_;
  std::string pipe_;                     // its OpenFileLink
  std::chrono::milliseconds interval_{0};  // between looks; 0: no known input
  Clock::time_point next_look_{};
};

}  // namespace dtrun::process
