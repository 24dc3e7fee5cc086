// Takes native stacks of a process with a tool of this host: eu-stack (elfutils), otherwise gdb.
//
// The tool attaches with ptrace, which stops the process meanwhile, so use it only for processes that are
// about to be ended. Afterwards the process runs if it ran before, even if the tool hung, crashed or was
// killed. Any thread that may block until the deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/stacks/native.h"

namespace dtrun::stacks {

// Tools of dtrun (eu-stack, gdb) that are attached to processes at this moment. A stop that they cause is not
// a fault, and code that ends the job must end them first.
//
// Shared by the threads that run tools and the loop that watches ranks; thread-safe.
class Attached {
  struct Entry {
    pid_t process = 0;
    pid_t tool = 0;  // group leader; 0: not started, or gone
    int handle = -1;
  };

 public:
  // While this object lives, a tool may stop `process`.
  class Scope {
   public:
    Scope(Attached& all, pid_t process);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    // `handle`: its pidfd, open until Gone.
    void Runs(pid_t tool, int handle);
    // Call before the tool is reaped: its pid may be reused afterwards.
    void Gone();
    // Sends SIGKILL to the tool and the processes that it has started.
    void Kill();

   private:
    Attached& all_;
    std::list<Entry>::iterator entry_;
  };

  bool Has(pid_t process) const;
  std::vector<pid_t> tools() const;
  // Sends SIGKILL to all, without waiting.
  void KillTools();

 private:
  static void Kill(const Entry& entry);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;
};

struct Unwound {
  std::vector<NativeFrame> frames;  // of the main thread, innermost first; empty: none
  bool any_waits = false;           // a thread is in a call that waits for other ranks
  std::string text;                 // the tool's output for all threads; lines
  bool late = false;                // the tool took too long
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

  // Skips a process that a debugger has; one that a signal has stopped stays stopped.
  Unwound Unwind(pid_t pid, Clock::time_point deadline) const;

 private:
  std::string program_;
  std::shared_ptr<Attached> attached_;
};

}  // namespace dtrun::stacks
