// A communicator's way for one kind of memory: a backend, and its communicator.
//
// The host's is made with the communicator, a device's by the first operation on it. Owned by the
// communicator. `table` and `scope` are constant once it is open; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/comm/operation.h"
#include "core/comm/plugin_call.h"
#include "dtrun/abi/backend.h"

namespace dtrun::comm {

struct Making;

// A backend that may carry a communicator.
struct Carrier {
  dtrun_backend table{};               // full table
  dtrun_instance* instance = nullptr;  // outlives the communicator
  std::string name;                    // "gloo"
  // A stream can only wait for an operation when the host has moved its data: req_wait_stream blocks until
  // then, and any thread may call it. So does a call on a stream that gives no handle.
  bool orders_on_host = false;
};

struct Route {
  Carrier carrier;
  std::int32_t device_kind = DTRUN_DEVICE_HOST;
  std::int32_t device_index = -1;
  Scope scope;  // views of `carrier` and of the Making
  dtrun_backend_comm* comm = nullptr;

  bool OfDevice() const { return device_kind != DTRUN_DEVICE_HOST; }
  bool CanAbort() const {
    return carrier.table.comm_abort != nullptr && (scope.caps.flags & DTRUN_CAP_ABORT) != 0;
  }
};

// What it can do. `limit`, `report`: of PluginCall.
Result<dtrun_backend_caps> CapsOf(const Carrier& carrier, Nanoseconds limit, const PluginReport& report);
// Asks what the carrier of `route` can do. REQUIRES: carrier and kind are set; `making` outlives the route.
Status Ask(const Making& making, Route& route);
// Makes its communicator on all ranks or on none: collective. REQUIRES: Ask succeeded.
Status Open(const Making& making, dtrun_kv* kv, Route& route);
// This rank makes none with that key-value space: tells the others, and returns the error of this rank.
Error Refuse(const Making& making, dtrun_kv* kv, Error why);
// Ends its communicator. REQUIRES: it has one
void Destroy(const Making& making, Route& route);

}  // namespace dtrun::comm
