// Two processes that guard each other: the one the user started (the guard) and the
// agent, which does the work. Called once, by the main thread, before there are others.
//
// Whichever is killed, the other ends every process of the job and removes the runtime
// folder. Both are child subreapers, so no process of the job escapes by double fork or
// setsid. The agent has its own session: a signal to the guard's process group, from the
// terminal or from `kill -9 -PGID`, reaches the guard alone, which relays what can be
// relayed. A terminal on stdin is read by the guard, in the foreground and for a rank that waits only, so the agent
// finds an ordinary pipe on descriptor 0.
#pragma once

#include <functional>

#include "core/process/lifeline.h"

namespace dtrun::node {

// Runs `work` in the agent and returns its result, or 128 + signal when the agent was
// killed, which is then said on stderr. Signals ignored on entry stay without effect
// (nohup). 2 when no agent could be started. REQUIRES: a single-threaded process.
int Guarded(const std::function<int(process::Lifeline&)>& work);

}  // namespace dtrun::node
