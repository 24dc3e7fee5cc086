// An operation that was started and not released yet; the type behind dtrun_work.
//
// Owned by the program, or by its communicator's watch if it is on a stream and the program holds no handle.
// The communicator lists all works, so that ending it leaves no request behind; only it changes list and
// chain. One thread at a time, as dtrun.h says, besides the watch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/comm/route.h"
#include "dtrun/abi/backend.h"
#include "dtrun/device.h"

struct dtrun_work {
  // Memory that is not returned to the system, so that IsHeld detects a released handle until 256 others have
  // been released. Any thread.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* work);
  static bool IsHeld(dtrun_work* work);

  dtrun_comm* comm = nullptr;           // null once the communicator is gone
  dtrun::comm::Route* route = nullptr;  // carries it
  dtrun_request* request = nullptr;     // null: there was nothing to do
  dtrun_op op{};                        // for messages; its arrays are cleared
  dtrun_stream stream{};                // of a device's operation
  std::int64_t deadline = 0;            // when core stops waiting, on the steady clock
  // For the trace: when the call began and was given to the backend, and its thread; `began` 0: not traced.
  std::int64_t began = 0, given = 0;
  std::uint32_t thread = 0;
  std::uint16_t traced = 0;             // flags
  std::atomic<bool> succeeded = false;  // reported; the backend is not polled again
  std::atomic<bool> ordered = false;    // a stream waits for it
  std::atomic<bool> over = false;       // the flight recorder has its end
  bool dropped = false;                 // has no handle: the watch releases it. Guarded by the watch
  dtrun_work* together = nullptr;       // the next operation of its group
  dtrun_work* next = nullptr;           // of the communicator's list
  dtrun_work** link = nullptr;          // points at this one
};
