// A stack for a thread's signal handlers, so that the handler of a fault runs also where the thread's own
// stack has no room left.
//
// Belongs to the thread and is released at its end. Any thread, for itself.
#pragma once

namespace dtrun {

// Does nothing if the thread has one, its own or the program's, or where there is no memory for it.
void HaveFaultStack();

}  // namespace dtrun
