// The stacks of a Python program, read from outside while it runs, waits or is stopped.
//
// Copies the interpreter's own structures out of the process, like py-spy: it loads nothing into the process,
// sends no signal, does not stop it, and does not need its GIL. Structures that change during the read give a
// wrong or shorter stack, never a fault here. CPython 3.11 to 3.13 (python_layout.h); other versions give no
// stacks. Any thread that may block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/stacks/frame.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {

struct Python {
  std::vector<PythonThread> threads;  // main thread first; empty: no readable Python
  // The address range of its GIL: a thread that waits at an address in it waits for the GIL.
  std::uint64_t lock_begin = 0, lock_end = 0;
};

// `maps` is the process's /proc/PID/maps.
Python ReadPython(const Memory& memory, const std::string& maps);

// Whether it is Python at all; another tool may be able to read it.
bool IsPython(const std::string& maps);

// The source location of an instruction: the entry for code unit `unit` in a code object's location table
// (PEP 626 and 657).
void Locate(const std::string& table, int first_line, long unit, Frame* frame);

}  // namespace dtrun::stacks
