// A line of a stack, and a thread with its stack.
//
// Values; any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace dtrun::stacks {

struct Frame {
  std::string file;  // as the program names it
  std::string function;
  int line = 0;  // 0: not known
  // Of the expression under way, in bytes of its line, when it stands on one line; else -1.
  int column = -1;
  int end_column = -1;
};

struct PythonThread {
  pid_t id = 0;               // as the kernel counts; 0: not known
  bool holds_gil = false;     // when it was looked at
  bool cut = false;           // there are more frames further out
  std::vector<Frame> frames;  // innermost first
};

}  // namespace dtrun::stacks
