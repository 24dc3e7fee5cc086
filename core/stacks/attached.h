// Tools of dtrun (eu-stack, gdb) that are attached to processes at this moment. A stop that they cause is not
// a fault, and code that ends the job must end them first.
//
// Shared by the threads that run tools and the loop that watches ranks; thread-safe.
#pragma once

#include <sys/types.h>

#include <list>
#include <mutex>
#include <vector>

#include "core/base/fd.h"

namespace dtrun::stacks {

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

}  // namespace dtrun::stacks
