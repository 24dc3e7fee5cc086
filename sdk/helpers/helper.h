// Starts a helper: a program that dtrun runs for itself and that is not the user's command, such as gdb,
// flux, `mpirun --version` or an interpreter that is asked for its modules. dtrun starts helpers only through
// this interface.
//
// Another user may have written the files of the current folder. Unless its caller requests it, no helper
// uses anything from there:
// - It is found in absolute folders of PATH. Empty and relative entries are not searched.
// - It runs in "/", or in the folder that its caller names.
// - Variables that list folders, or name a file that shells, the loader or Python run automatically, contain
//   absolute paths only (SafeEnvironment). All others are the caller's, because users trust themselves.
// - It has /dev/null, the caller's pipe and standard error, no other descriptor, and default signals. Its
//   process group is its own and ends with it. It is killed when the thread that started it ends.
// - Its run time and the amount of output read are bounded.
//
// sdk/tests/check_starts.py lists the files that start programs in another way, with their reasons, and finds
// any that is not listed. For core and the plugins of this tree; not installed. Any thread of a process in
// which no other thread waits for all children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::helpers {

struct Helper {
  std::vector<std::string> command;           // the program by its absolute path, and arguments
  std::vector<std::string> environment = {};  // "NAME=value", sanitised; empty: this process's own
  std::string folder = "/";
  bool with_errors = false;  // reads its standard error too; else it writes to this process's
  std::chrono::milliseconds patience{60'000};
  std::size_t most = std::size_t{1} << 20;  // limit of its output, in bytes
};

enum class End {
  kEnded,       // by itself
  kNotStarted,  // `status` has the errno value
  kTooLate,     // killed at the time limit
  kTooMuch,     // killed because it printed too much
};

struct Answer {
  End end = End::kNotStarted;
  int status = 0;    // from waitpid
  std::string text;  // its output
  bool succeeded() const;
};

// Runs it to its end.
Answer Ask(const Helper& helper);

// Starts it with `output` as its standard output; the caller monitors it. Returns its pid, or a negative
// errno value.
pid_t Start(const Helper& helper, int output);

// The program's path, looked up in `path`, a value of PATH; if it has a '/', `program` made absolute. Empty:
// there is none.
std::string Find(const std::string& program, std::string_view path);

// The absolute entries of a list of folders such as PATH.
std::string AbsoluteFolders(std::string_view list, std::string_view separators = ":");

// Removes entries that refer to the current folder; adds PATH if missing.
std::vector<std::string> SafeEnvironment(std::vector<std::string> environment);

}  // namespace dtrun::helpers
