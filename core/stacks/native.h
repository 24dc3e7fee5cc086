// Parses native stacks printed by eu-stack (elfutils) or gdb, and describes them in the terms of the
// program's author.
//
// Pure; any thread. Names come from the program's own files and are untrusted: they are truncated and
// stripped of control characters.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::stacks {

struct NativeFrame {
  std::string function;  // without arguments; empty: the file has no symbols
  std::string module;    // path of the executable or library; empty: unknown
  std::string file;      // source file; empty: built without -g
  int line = 0;
};

// "std::this_thread::sleep_for" for "void std::this_thread::sleep_for<long>(long const&)": without brackets
// and their content, and the type before the name. At most 120 bytes.
std::string WithoutArguments(std::string_view signature);

inline constexpr pid_t kAllThreads = -1;

// The frames of thread `id`, or of kAllThreads, in the output of `eu-stack -s -m -i`, innermost first; empty
// if it is missing.
std::vector<NativeFrame> FramesOfEuStack(std::string_view text, pid_t id);
// The same for gdb's `thread apply all backtrace`; `maps` is the process's /proc/PID/maps.
std::vector<NativeFrame> FramesOfGdb(std::string_view text, pid_t id, std::string_view maps);

struct NativePlace {
  std::string what;               // "nanosleep", "MPI_Allreduce"; empty: its own code
  std::string where;              // "main.cc:12"; empty: unknown
  std::string within;             // "main": the program's own function
  bool waits = false;             // the call waits for other ranks
  bool waits_for_thread = false;  // ... for another thread of the process
  bool waits_for_peer = false;    // ... for a peer of a socket that the program has itself
};

// The innermost named frame of the program itself, not of a library; nullopt if there is none.
std::optional<NativePlace> PlaceOf(const std::vector<NativeFrame>& frames);

// Whether the module is a library that the program uses, not its own code.
bool IsLibrary(std::string_view module);

// Whether it is code of a library's header, the C++ library's or dtrun's, that was compiled into the program.
bool IsOfHeader(const NativeFrame& frame);

// Whether any of them is a call that waits for other ranks.
bool AnyWaits(const std::vector<NativeFrame>& frames);

}  // namespace dtrun::stacks
