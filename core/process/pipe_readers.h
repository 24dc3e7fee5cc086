// Whether a program reads a pipe, seen from outside by /proc: reading has no event that the writer could wait for.
//
// The guard's terminal pump asks; any thread. A copy of a waiting thread's poll set may wait for the page.
#pragma once

#include <string>

namespace dtrun::process {

// How /proc names the open file, "pipe:[4711]". Empty where /proc does not tell.
std::string OpenFileLink(int descriptor);

// Whether a process below this one asks for what the empty pipe of this OpenFileLink gets next: a thread is blocked
// in a read, poll or select of it; or an epoll or io_uring of the process has it, or it is non-blocking, so that no
// thread needs to be blocked. True also where the kernel does not let this process look. A program that only asks
// select or poll with a time limit of 0 is not seen.
bool IsAwaited(const std::string& pipe);

}  // namespace dtrun::process
