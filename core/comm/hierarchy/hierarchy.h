// Ranks on several hosts: shared memory inside each, the backend between one leader per host.
//
// A backend table like any other, built from two: `local` joins the ranks of one host, `wire` reaches every
// rank. If all ranks of a communicator share one host, it uses `local` alone; if no two do, `wire` alone.
// Owned by the runtime; thread classes as in dtrun/abi/backend.h. Rationale: docs/decisions/007-hierarchy.md.
#pragma once

#include "dtrun/abi/backend.h"

namespace dtrun::comm {

// The table's state; its instance is a pointer to this. The plugins see only the ranks and keys of their part
// of each communicator.
struct Layers {
  dtrun_backend local{};  // full tables
  dtrun_instance* local_instance = nullptr;
  dtrun_backend wire{};
  dtrun_instance* wire_instance = nullptr;
  int host = 0;  // of this rank
  const dtrun_host* services = nullptr;
  // Runs without core, which otherwise reports failed peers: reports them itself.
  bool coreless = false;
};

inline dtrun_instance* AsInstance(Layers* layers) { return reinterpret_cast<dtrun_instance*>(layers); }

const dtrun_backend& HierarchyBackend();

}  // namespace dtrun::comm
