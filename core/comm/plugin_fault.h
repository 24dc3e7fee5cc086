// Finds the plugin at fault when this process dies of SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, and leaves
// its name in the flight recorder, where the host reads it.
//
// A plugin is at fault when the thread that dies has a function of it on its stack, or runs in code of its
// libraries alone, or has called an address without code from a function of it, or has a broken stack inside
// a call of the plugin. A signal from outside, a signal handler of the program and a forked child blame none.
// Handlers that were there before run afterwards; without one the stack of a crash is printed. Core files are
// as ever.
#pragma once

namespace dtrun::comm {

// Call before a plugin is loaded, and again once it may have set handlers of its own. One thread at a time.
void WatchForFaults();

}  // namespace dtrun::comm
