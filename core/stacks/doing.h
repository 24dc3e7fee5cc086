// What a process is doing now, and the stacks that show it.
//
// Inspects from outside: the process is neither stopped nor notified. Any thread that may block, with a limit
// set by the caller: files of /proc block for a process stuck in the kernel. The exception is LookClosely,
// which stops the process for a moment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/stacks/place.h"
#include "core/stacks/unwinder.h"

namespace dtrun::stacks {

struct Doing {
  pid_t pid = 0;  // pid of the process that was read; for a wrapper the Python below it
  Stand stand = Stand::kUnknown;
  bool runs = false;       // on a CPU
  bool naps = false;       // sleeps for less than a second
  std::uint64_t spot = 0;  // where a program that is not Python waits, see Task
  bool stopped = false;    // stopped by a signal or a debugger
  std::string tracer;      // the debugger that stopped it: "gdb (pid 12)"; empty: none
  bool trains = false;
  bool joins = false;
  bool saves = false;
  bool loads = false;      // waits for a worker of its data loader
  bool may_handle = true;  // an error that it met may still propagate (core/stacks/place.h)
  bool python = false;     // an interpreter, readable or not
  std::string what;        // "time.sleep"; empty: not known
  std::string where;       // "train.py:40"; empty: not known
  std::string more;        // "`while True: pass`", "read of descriptor 0 (a pipe)"; may be empty
  // What it waits for, as shown by other processes: "waits for its data loader; a worker is in time.sleep at
  // data.py:6"; may be empty.
  std::string beside;
  std::optional<std::vector<int>> awaited = {};  // ranks; unset: unknown (torch_call.h)
  pid_t lock_holder = 0;  // process with the file lock that it waits for; 0: it waits for none, or unknown
  std::string text;       // all stacks, for a file; lines
};

// How much to read: kPlace leaves `text` and `may_handle` as they are, and reads threads that Python does not
// know only where the place depends on them. A program with torch has hundreds.
enum class Detail { kPlace, kAll };

// `below`: the process's descendants, parents first. `attached`: dtrun's own tools; a process that one of
// them has stopped does not count as stopped.
Doing LookAt(pid_t pid, const std::vector<pid_t>& below, const Attached& attached = {},
             Detail detail = Detail::kAll);

// Adds native stacks, and the location of a program that is not Python. Skips a process that a debugger has.
// Only for one that is about to be ended.
void LookClosely(const Unwinder& unwinder, Unwinder::Clock::time_point deadline, Doing* doing);

// How the phrase of a process begins that a debugger has stopped.
inline constexpr char kStoppedBy[] = "stopped by ";

// The phrases for a process at an unknown location: on a CPU, and not.
inline constexpr char kRunning[] = "running";
inline constexpr char kUnknownPlace[] = "at a place that is not known";

// "in time.sleep at train.py:40", or one of those.
std::string PhraseOf(const Doing& doing);

}  // namespace dtrun::stacks
