// Native stacks of a process by a tool of this host: eu-stack (elfutils), else gdb.
//
// The tool attaches by ptrace and so stops the process for as long as it looks: only for processes that are
// about to be ended. Afterwards the process runs, also when the tool hung, crashed or was killed. Any thread,
// where waiting until the deadline is allowed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/stacks/attached.h"
#include "core/stacks/native.h"

namespace dtrun::stacks {

struct Unwound {
  std::vector<NativeFrame> frames;  // of the first thread, innermost first; empty: none
  std::string text;                 // of all threads, as the tool prints them; lines
  std::string trouble;              // why there are none: "eu-stack: ... Operation not permitted"
};

class Unwinder {
 public:
  using Clock = std::chrono::steady_clock;

  // Looks along `path`, as in PATH; entries that are not absolute do not count. `attached` knows its tool
  // while that runs.
  static Unwinder Find(const std::string& path,
                       std::shared_ptr<Attached> attached = std::make_shared<Attached>());

  // "eu-stack", "gdb"; empty: there is neither.
  std::string name() const { return program_.substr(program_.rfind('/') + 1); }

  // Leaves alone what somebody else has stopped, a debugger included.
  Unwound Unwind(pid_t pid, Clock::time_point deadline) const;

 private:
  std::string program_;
  std::shared_ptr<Attached> attached_;
};

}  // namespace dtrun::stacks
