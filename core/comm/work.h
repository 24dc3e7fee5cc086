// An operation that was started and not released yet; what dtrun_work stands for.
//
// Owned by the program; an operation on a stream that the program has no handle of, or no more, by its
// communicator's watch. The communicator keeps a list of all, so that ending it leaves no request behind;
// list and chain are the communicator's to change. One thread at a time, as dtrun.h says, besides the watch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/comm/route.h"
#include "dtrun/abi/backend.h"
#include "dtrun/dtrun.h"

struct dtrun_work {
  // Memory that is not given back to the system, so that a handle that is used once more is told from one
  // that is held, until 256 others have been released. Any thread.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* work);
  static bool IsHeld(dtrun_work* work);

  dtrun_comm* comm = nullptr;           // null once the communicator is gone
  dtrun::comm::Route* route = nullptr;  // that carries it
  dtrun_request* request = nullptr;     // null: there was nothing to do
  dtrun_op op{};                        // for messages; its arrays are cleared
  dtrun_stream stream{};                // that it is on; of a device's operation
  std::int64_t deadline = 0;            // when core's patience ends, on the steady clock
  std::atomic<bool> succeeded = false;  // reported; never asked of the backend again
  std::atomic<bool> ordered = false;    // a stream waits for it
  bool dropped = false;                 // nobody holds it: the watch releases it. Guarded by the watch
  dtrun_work* together = nullptr;       // the next operation of its group
  dtrun_work* next = nullptr;           // of the communicator's list
  dtrun_work** link = nullptr;          // what points at this one
};
