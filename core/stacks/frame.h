// A stack frame, and a thread with its stack.
//
// Values; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dtrun::stacks {

struct Frame {
  std::string file;  // name used by the program
  std::string function;
  int line = 0;  // 0: unknown
  // Byte columns of the current expression, if it is on one line; otherwise -1.
  int column = -1;
  int end_column = -1;
  // Addresses in the process, of the frame and of its code; 0: it is no frame of Python.
  std::uint64_t at = 0, code = 0;
};

struct PythonThread {
  pid_t id = 0;               // kernel thread id; 0: unknown
  bool holds_gil = false;     // at the time of the look
  bool cut = false;           // there are more outer frames
  std::vector<Frame> frames;  // innermost first
};

}  // namespace dtrun::stacks
