// The process's only runtime: counted init, and its state after a fork.
//
// Call Init and Finalize from one thread at a time, the rest from any.
#pragma once

#include "core/base/result.h"
#include "core/comm/runtime.h"

namespace dtrun::comm {

// The first call joins the job; later ones are counted.
Status Init();
// Undoes one Init; the last one leaves the job. No effect without an Init, or after a fork.
void Finalize();

// The runtime between the first Init and the last Finalize; null otherwise. A forked child still sees its
// parent's, but only for its numbers.
Runtime* Current();

// True in a child that was forked while the runtime was up: its sockets and threads belong
// to the parent, so it must not communicate.
bool Forked();
Error ForkError();

}  // namespace dtrun::comm
