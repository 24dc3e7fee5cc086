// Reaps the orphans that a child subreaper adopts, as soon as they end.
//
// The kernel makes an orphan a child of the subreaper's first thread, and a started process a child of the
// thread that started it. So the agent's first thread only reaps, and its work runs in a second thread. That
// way the reaper never takes the exit status of a child that the other thread waits for.
#pragma once

#include <sys/types.h>

#include <functional>

namespace dtrun::process {

// Runs `work` in a new thread and returns its result; the calling thread reaps meanwhile. REQUIRES: the
// calling thread is the process's first, and SIGCHLD is blocked. Throws std::system_error if no thread can be
// started.
int ReapWhile(const std::function<int()>& work);

// Reaps every ended child of this process except `kept`. For a process that waits for no other children.
void ReapOthers(pid_t kept);

}  // namespace dtrun::process
