// The process's one runtime: counted init, and what a fork leaves of it.
//
// Init and Finalize from one thread at a time, the rest from any.
#pragma once

#include "core/base/result.h"
#include "core/comm/runtime.h"

namespace dtrun::comm {

// Joins the job at the first call, counts the others.
Status Init();
// Undoes one Init; the last leaves the job. Without an Init, or after a fork, nothing.
void Finalize();

// The runtime between the first Init and the last Finalize; null otherwise. A forked child
// still sees its parent's, for its numbers only.
Runtime* Current();

// True in a child that was forked while the runtime was up: its sockets and threads belong
// to the parent, so it must not communicate.
bool Forked();
Error ForkError();

}  // namespace dtrun::comm
