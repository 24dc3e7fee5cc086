// Forwards terminal input to a pipe, but only while dtrun is in the foreground and a descendant waits for
// input (IsAwaited). Other input stays at the terminal, for the shell that started this process.
//
// Owned by the guard's poll loop; one thread. The pipe holds at most one read of the terminal, usually one
// line. The pump looks for a reader only while there is input, at growing intervals.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>

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

// Makes a key end a line of the terminal, so that it can be read at once, and undoes that. Does nothing where
// the terminal belongs to another job or its modes do not allow it.
class LineEndingKey {
 public:
  LineEndingKey() = default;
  LineEndingKey(int terminal, char key);
  ~LineEndingKey() { Undo(); }
  LineEndingKey(LineEndingKey&& other) noexcept { *this = std::move(other); }
  LineEndingKey& operator=(LineEndingKey&& other) noexcept;

  bool works() const { return terminal_ >= 0; }

 private:
  void Undo();

  int terminal_ = -1;
  char key_ = 0;
  pid_t owner_ = 0;  // a forked child undoes nothing
};

class TerminalPump {
 public:
  // Ctrl-T, as SIGINFO has on BSD, asks for the stacks of the ranks.
  static constexpr char kStacksKey = 'T' & 0x1f;

  // The caller keeps `terminal`. reader() is the read end of the pipe.
  static Result<TerminalPump> Open(int terminal);

  UniqueFd& reader() { return reader_; }
  // What to poll for now; descriptor -1: nothing.
  pollfd Wanted() const;
  // Poll timeout in milliseconds, until the next look. -1: no limit.
  int Patience() const;
  // Call after poll. `events`: the returned events, 0 after a timeout. Returns whether the user has pressed
  // kStacksKey, at the beginning of a line and while no other input waits.
  bool Advance(short events);

 private:
  using Clock = std::chrono::steady_clock;

  void LookLater(Clock::time_point since);

  int terminal_ = -1;
  LineEndingKey key_;
  int empty_lines_ = 0;  // read while the key was looked for; the pipe gets them first
  UniqueFd reader_, writer_;
  std::string pipe_;                       // its OpenFileLink
  std::chrono::milliseconds interval_{0};  // between looks; 0: no known input
  Clock::time_point next_look_{};
};

}  // namespace dtrun::process
