// Forwards terminal input to a pipe, but only while dtrun is in the foreground and a descendant waits for
// input (pipe_readers.h). Other input stays at the terminal, for the shell that started this process.
//
// Owned by the guard's poll loop; one thread. The pipe holds at most one read of the terminal, usually one
// line. The pump looks for a reader only while there is input, at growing intervals.
#pragma once

#include <chrono>
#include <poll.h>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

// Detects through /proc whether a program reads a pipe. The kernel has no event for that which the writer
// could wait for.
//
// Used by the guard's terminal pump; any thread. Copying the poll set of a waiting thread may block on a page
// fault.

// The open file's name in /proc, "pipe:[4711]". Empty if /proc does not show it.
std::string OpenFileLink(int descriptor);

// Whether a descendant of this process waits for input from the empty pipe with this OpenFileLink. That is
// the case if a thread blocks in a read, poll or select of it. It is also assumed if the pipe is in an epoll
// or io_uring of the process or is non-blocking, because then no thread needs to block. Also true if the
// kernel denies the look. A program that only calls select or poll with a timeout of 0 is not detected.
bool IsAwaited(const std::string& pipe);

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
