// Prints the stack of a crash on standard error, for a signal's handler.
//
// In the form of glibc's backtrace_symbols and of Open MPI, which the host reads (core/stacks/crash.h).
// Async-signal-safe.
#pragma once

namespace dtrun::comm {

// REQUIRES: called by the handler of `signal`, on the thread that crashed.
void PrintCrashStack(int signal);

}  // namespace dtrun::comm
