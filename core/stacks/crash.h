// Where the program's own code crashed: from the stack that a process printed as it died, from its core file,
// or from the kernel's log.
//
// The stack is one of libdtrun, Open MPI or UCX, which print them in the form of glibc's backtrace_symbols.
// Both need a tool of this host: eu-addr2line or addr2line; eu-stack or gdb. What they read is the program's
// own and untrusted. Blocks until the deadline at most; any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stacks/kernel_log.h"
#include "core/stacks/native.h"

namespace dtrun::stacks {

struct PrintedFrame {
  std::string module;        // "/home/me/train", "./train"
  std::string symbol;        // "main"; empty: the module does not export it
  std::uint64_t offset = 0;  // of the instruction after the call, from `symbol`, or else in the module
};

// The frames of the stack that libdtrun, Open MPI or UCX has printed in these lines when process `pid` got
// `signal`, innermost first, without that of the signal's return.
std::vector<PrintedFrame> PrintedStack(const std::vector<std::string_view>& lines, pid_t pid, int signal);

// The core file of process `pid`, by `pattern`, the text of /proc/sys/kernel/core_pattern, and the process's
// working folder. Empty: none that is newer than `since`.
std::filesystem::path CoreFile(std::string_view pattern, const std::filesystem::path& folder, pid_t pid,
                               std::filesystem::file_time_type since);

struct Crash {
  pid_t pid = 0;
  int signal = 0;
  std::string printed;                 // the end of its output on stderr
  std::filesystem::path folder;        // its working folder
  std::filesystem::path core;          // empty: none
  std::filesystem::path program = {};  // the file that it ran
  std::optional<LoggedFault> logged = {};
};

// "in step at solver.c:42"; "in step" without debug information. Empty: unknown, or in a plugin.
// `path`: where the tools are, in the format of PATH.
std::string CrashPlace(const Crash& crash, const std::string& path,
                       std::chrono::steady_clock::time_point deadline);

}  // namespace dtrun::stacks
