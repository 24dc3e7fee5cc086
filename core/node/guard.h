// Splits dtrun into two processes that guard each other: the one that the user started (the guard), and the
// agent, which does the work. Called once, by the main thread, before other threads exist.
//
// If either is killed, the other ends every process of the job and removes the runtime folder. Both are child
// subreapers, so no process of the job escapes by double fork or setsid. The agent has its own session: a
// signal to the guard's process group, from the terminal or from `kill -9 -PGID`, reaches only the guard,
// which relays what can be relayed. The guard reads a terminal on stdin, only in the foreground and for a
// rank that waits, so the agent has an ordinary pipe on descriptor 0.
#pragma once

#include <functional>

#include "core/process/lifeline.h"

namespace dtrun::node {

// Runs `work` in the agent and returns its result, or 128 + signal if the agent was killed, which it then
// reports on stderr. Returns 2 if no agent could be started. Signals ignored on entry stay ignored (nohup).
// REQUIRES: a single-threaded process.
int Guarded(const std::function<int(process::Lifeline&)>& work);

}  // namespace dtrun::node
