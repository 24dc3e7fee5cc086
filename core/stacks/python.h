// The stacks of a Python program, read from outside while it runs, waits or stands stopped.
//
// Copies the interpreter's own structures out of the process (as py-spy does): nothing is loaded into it, no
// signal is sent, it is not stopped, and it need not hold its lock. Structures that change while they are
// read give a wrong or shorter stack, never a fault here. CPython 3.11 to 3.13 (python_layout.h); others have
// no stacks here. Any thread, where waiting is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/stacks/frame.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {

struct Python {
  std::vector<PythonThread> threads;  // the first one first; empty: no Python that can be read
  // Where its lock is: a thread that waits at an address in here waits for the lock.
  std::uint64_t lock_begin = 0, lock_end = 0;
};

// `maps` is the process's /proc/PID/maps.
Python ReadPython(const Memory& memory, const std::string& maps);

// Whether it is a Python at all, which another tool may read.
bool IsPython(const std::string& maps);

// Where in its source an instruction stands: the entry for code unit `unit` of a code object's table of
// locations (PEP 626 and 657).
void Locate(const std::string& table, int first_line, long unit, Frame* frame);

}  // namespace dtrun::stacks
