// Takes native stacks of a process with a tool of this host: eu-stack (elfutils), otherwise gdb.
//
// The tool attaches with ptrace, which stops the process meanwhile, so use it only for processes that are
// about to be ended. Afterwards the process runs, even if the tool hung, crashed or was killed. Any thread
// that may block until the deadline.
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
  std::vector<NativeFrame> frames;  // of the main thread, innermost first; empty: none
  std::string text;                 // the tool's output for all threads; lines
  std::string trouble;              // why there are no frames: "eu-stack: ... Operation not permitted"
};

class Unwinder {
 public:
  using Clock = std::chrono::steady_clock;

  // Searches `path`, in the format of PATH; ignores entries that are not absolute. `attached` has the tool
  // while it runs.
  static Unwinder Find(const std::string& path,
                       std::shared_ptr<Attached> attached = std::make_shared<Attached>());

  // "eu-stack", "gdb"; empty: neither exists.
  std::string name() const { return program_.substr(program_.rfind('/') + 1); }

  // Skips a process that another program has stopped, for example a debugger.
  Unwound Unwind(pid_t pid, Clock::time_point deadline) const;

 private:
  std::string program_;
  std::shared_ptr<Attached> attached_;
};

}  // namespace dtrun::stacks
