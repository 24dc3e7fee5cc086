// A communicator's route for one kind of memory: a backend and its communicator.
//
// The host route is made with the communicator, a device route by the first operation on the device. Owned by
// the communicator. `table` and `scope` are constant once it is open; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/comm/operation.h"
#include "core/comm/plugin_call.h"
#include "dtrun/abi/services.h"

namespace dtrun::comm {

struct Making;

// Where programs find the extensions of a backend.
struct Extensions {
  const dtrun_plugin* plugin = nullptr;  // full table; null: a backend of core's own
  // Of such a one: what it stands on, as dtrun_wrapper_extension says; null: nothing.
  decltype(dtrun_wrapper_extension::below) below = nullptr;
};

// A backend that may carry a communicator.
struct Carrier {
  dtrun_backend table{};               // full table
  dtrun_instance* instance = nullptr;  // outlives the communicator
  std::string name;                    // "gloo"
  // A stream can wait for an operation only after the host has moved its data: req_wait_stream blocks until
  // then, and any thread may call it. A call on a stream without a handle blocks, too.
  bool orders_on_host = false;
  Extensions extensions = {};
};

struct Route {
  Carrier carrier;
  std::int32_t device_kind = DTRUN_DEVICE_HOST;
  std::int32_t device_index = -1;
  Scope scope;  // views of `carrier` and of the Making
  dtrun_backend_comm* comm = nullptr;

  bool OfDevice() const { return device_kind != DTRUN_DEVICE_HOST; }
  bool CanAbort() const {
    return carrier.table.comm_abort != nullptr && (scope.caps.features & DTRUN_CAP_ABORT) != 0;
  }
};

// The carrier's capabilities. `limit`, `report`: as in PluginCall.
Result<dtrun_backend_caps> CapsOf(const Carrier& carrier, Nanoseconds limit, const PluginReport& report);
// Queries the capabilities of its carrier. REQUIRES: carrier and kind are set; `making` outlives the route.
Status Ask(const Making& making, Route& route);
// Creates its communicator on all ranks or on none. Collective. REQUIRES: Ask succeeded.
Status Open(const Making& making, dtrun_kv* kv, Route& route);
// This rank creates none in that key-value space: notifies the others, and returns this rank's error.
Error Refuse(const Making& making, dtrun_kv* kv, Error why);
// The id of a backend's failure with that status; none: it says nothing of the other ranks.
ErrorId IdOfFailure(dtrun_status status);
// Destroys its communicator. REQUIRES: it has one
void Destroy(const Making& making, Route& route);

}  // namespace dtrun::comm
