// Prints where a case crashes, before the process dies of it: functions or addresses in their files, for
// addr2line.
//
// The main thread, before others start.
#pragma once

namespace dtrun::conformance::tool {

// From now on, on standard error, of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT.
void PrintStackOfCrash();

}  // namespace dtrun::conformance::tool
