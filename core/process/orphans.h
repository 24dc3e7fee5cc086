// Reaps the processes that a child subreaper adopts, as soon as they end.
//
// The kernel gives an orphan to the subreaper's first thread, and a child that a thread starts is
// that thread's. So the agent's first thread does nothing but reap, its work runs in a second one,
// and the status of a child is never taken from the one who started it and waits for it.
#pragma once

#include <sys/types.h>

#include <functional>

namespace dtrun::process {

// Runs `work` in a thread of its own and returns its result; the calling thread reaps meanwhile.
// REQUIRES: the calling thread is the process's first, and SIGCHLD is blocked. Throws
// std::system_error where no thread can be started.
int ReapWhile(const std::function<int()>& work);

// Reaps every child of this process that has ended, but `kept`. For a process with no other children to
// wait for.
void ReapOthers(pid_t kept);

}  // namespace dtrun::process
