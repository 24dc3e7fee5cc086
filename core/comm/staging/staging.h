// Staging: any backend moves the memory of devices, through pieces in the host's memory.
//
// A backend table like any other, built from two: `device` copies, `wire` carries the copied data. Owned by
// the runtime; thread classes as in dtrun/abi/backend.h. Rationale: docs/decisions/026-devices.md.
#pragma once

#include "core/comm/devices.h"

namespace dtrun::comm {

// The table's state; its instance is a pointer to this.
struct Staging {
  Device device;
  Carrier wire;  // moves host memory, and perhaps the device's, without streams (DTRUN_CAP_NO_STREAM)
  const dtrun_host* services = nullptr;
  // Runs without core, which otherwise reports failed peers: reports them itself.
  bool coreless = false;
};

inline dtrun_instance* AsInstance(Staging* staging) { return reinterpret_cast<dtrun_instance*>(staging); }

const dtrun_backend& StagingBackend();

}  // namespace dtrun::comm
