// The stacks of a program that no interpreter runs, as eu-stack (elfutils) or gdb print them: read, and told
// in the words of whoever wrote the program.
//
// Pure; any thread. Names come from the program's own files and are not trusted: they are kept short and
// without controls.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::stacks {

struct NativeFrame {
  std::string function;  // without arguments; empty: its file has no symbols
  std::string module;    // path of the executable or library; empty: not known
  std::string file;      // of the source; empty: built without -g
  int line = 0;
};

// Innermost first, of the thread `id`, as `eu-stack -s -m -i` prints it; empty when it is not there.
std::vector<NativeFrame> FramesOfEuStack(std::string_view text, pid_t id);
// Likewise of `thread apply all backtrace`; `maps` is the process's /proc/PID/maps.
std::vector<NativeFrame> FramesOfGdb(std::string_view text, pid_t id, std::string_view maps);

struct NativePlace {
  std::string what;    // "nanosleep", "MPI_Allreduce"; empty: its own line
  std::string where;   // "main.cc:12"; empty: not known
  std::string within;  // "main": the function of the program itself
  bool waits = false;  // for other ranks, by what is called
};

// The innermost frame of the program itself, not of a library that it uses; nothing when there is none with
// a name.
std::optional<NativePlace> PlaceOf(const std::vector<NativeFrame>& frames);

}  // namespace dtrun::stacks
