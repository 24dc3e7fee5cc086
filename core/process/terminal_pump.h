// Carries what is typed at a terminal to a pipe, in the foreground only.
//
// Owned by the guard's poll loop; one thread. Reads the terminal only when the pipe has
// room, so a rank that does not read its stdin holds nothing up.
#pragma once

#include <poll.h>

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
  // How long the poll may take: short while in the background with something typed there,
  // since no event tells when a running job comes to the foreground. -1: no limit.
  int Patience() const { return background_ ? 200 : -1; }
  // After poll: `events` are those returned, 0 when the wait timed out.
  void Advance(short events);

 private:
  int terminal_ = -1;
  UniqueFd reader_, writer_;
  std::string pending_;
  bool background_ = false;
};

}  // namespace dtrun::process
