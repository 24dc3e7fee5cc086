// What a process does just now, and the stacks that say so.
//
// Looks from outside: the process is neither stopped nor told. Any thread, where waiting is allowed, with a
// limit of the caller's: files of /proc wait for a process that is stuck in the kernel. LookClosely is the
// exception: it stops the process for a moment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/stacks/place.h"
#include "core/stacks/unwinder.h"

namespace dtrun::stacks {

struct Doing {
  pid_t pid = 0;  // of the process that was read: of a wrapper, the Python below it
  Stand stand = Stand::kUnknown;
  bool runs = false;     // on a processor
  bool stopped = false;  // by a signal or a debugger
  bool trains = false;
  bool joins = false;
  bool may_handle = true;  // an error that it has met may be on its way (core/stacks/handler.h)
  bool python = false;     // an interpreter, whether or not it can be read
  std::string what;        // "time.sleep"; empty: not known
  std::string where;       // "train.py:40"; empty: not known
  std::string more;        // "`while True: pass`", "read of descriptor 0 (a pipe)"; may be empty
  // What it waits for, as other processes show it: "waits for its data loader; a worker is in time.sleep at
  // data.py:6"; may be empty.
  std::string beside;
  pid_t lock_holder =
      0;             // that has the lock of a file for which it waits; 0: it waits for none, or not known
  std::string text;  // all stacks, for a file; lines
};

// `below`: the process's descendants, parents first.
Doing LookAt(pid_t pid, const std::vector<pid_t>& below);

// Adds native stacks, and the place where a program that is no Python stands. Leaves alone what is stopped.
// Only for a process that is about to be ended.
void LookClosely(const Unwinder& unwinder, Unwinder::Clock::time_point deadline, Doing* doing);

// The phrases of a process whose place is not known: on a processor, and not.
inline constexpr char kRunning[] = "running";
inline constexpr char kUnknownPlace[] = "at a place that is not known";

// "in time.sleep at train.py:40", or one of those.
std::string PhraseOf(const Doing& doing);

}  // namespace dtrun::stacks
