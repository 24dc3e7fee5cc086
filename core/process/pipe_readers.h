// Detects through /proc whether a program reads a pipe. The kernel has no event for that which the writer
// could wait for.
//
// Used by the guard's terminal pump; any thread. Copying the poll set of a waiting thread may block on a page
// fault.
#pragma once

#include <string>

namespace dtrun::process {

// The open file's name in /proc, "pipe:[4711]". Empty if /proc does not show it.
std::string OpenFileLink(int descriptor);

// Whether a descendant of this process waits for input from the empty pipe with this OpenFileLink. That is
// the case if a thread blocks in a read, poll or select of it. It is also assumed if the pipe is in an epoll
// or io_uring of the process or is non-blocking, because then no thread needs to block. Also true if the
// kernel denies the look. A program that only calls select or poll with a timeout of 0 is not detected.
bool IsAwaited(const std::string& pipe);

}  // namespace dtrun::process
