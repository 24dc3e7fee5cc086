// The one way in which dtrun starts a helper: a program that it runs for itself and that is not the user's
// command, such as gdb, flux, `mpirun --version` or an interpreter that is asked for its modules.
//
// Another user may have written the files of the current folder. Unless its caller says so, no helper takes
// anything from there:
// - It is found in absolute folders of PATH. Empty and relative entries are not searched.
// - It runs in "/", or in the folder that its caller names.
// - Variables that list folders, or name a file which shells, the loader or Python run by themselves, hold
//   absolute paths only (SafeEnvironment). All others are the caller's, because users trust themselves.
// - It has /dev/null, the caller's pipe and standard error, no other descriptor, and default signals. Its
//   process group is its own and ends with it. It is killed when the thread that started it ends.
// - Its time, and what is read of it, are bounded.
//
// sdk/tests/check_starts.py lists the files that start programs in another way, with their reasons, and finds
// any that is not listed. For core and the plugins of this tree; not installed. Any thread of a process that
// does not wait for all its children in another thread.
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
  std::vector<std::string> environment = {};  // "NAME=value", made safe; empty: this process's own
  std::string folder = "/";
  bool with_errors = false;  // reads its standard error too; else that is this process's
  std::chrono::milliseconds patience{60'000};
  std::size_t most = std::size_t{1} << 20;  // of what it prints, in bytes
};

enum class End {
  kEnded,       // by itself
  kNotStarted,  // by the errno value in `status`
  kTooLate,     // killed when its time was over
  kTooMuch,     // killed when it had printed too much
};

struct Answer {
  End end = End::kNotStarted;
  int status = 0;    // as of waitpid
  std::string text;  // what it has printed
  bool succeeded() const;
};

// Runs it to its end.
Answer Ask(const Helper& helper);

// Starts it, printing to `output`, for who watches it himself. Its number; an errno value, negative, when it
// cannot be started.
pid_t Start(const Helper& helper, int output);

// The path of the program along `path`, a value of PATH; itself, made absolute, when it has a '/'. Empty:
// there is none.
std::string Find(const std::string& program, std::string_view path);

// The absolute entries of a list of folders, as PATH is.
std::string AbsoluteFolders(std::string_view list, std::string_view separators = ":");

// Without what leads into the current folder; with PATH.
std::vector<std::string> SafeEnvironment(std::vector<std::string> environment);

}  // namespace dtrun::helpers
