// Ranks on several hosts: shared memory inside each, the backend between one leader per host.
//
// A backend table like any other, made of two: `local` joins the ranks of one host, `wire`
// reaches every rank. A communicator whose ranks share one host uses `local` alone; one whose
// ranks all live apart uses `wire` alone. Owned by the runtime; thread classes as in
// dtrun/abi/backend.h. Why it is built so: docs/decisions/007-hierarchy.md.
#pragma once

#include "dtrun/abi/backend.h"

namespace dtrun::comm {

// What the table works on; its instance is a pointer to this. The plugins know ranks and keys of a part of
// each communicator only.
struct Layers {
  dtrun_backend local{};  // full tables
  dtrun_instance* local_instance = nullptr;
  dtrun_backend wire{};
  dtrun_instance* wire_instance = nullptr;
  int host = 0;  // of this rank
  const dtrun_host* services = nullptr;
  // Works without core, which else reports peers: does so itself.
  bool coreless = false;
};

inline dtrun_instance* AsInstance(Layers* layers) { return reinterpret_cast<dtrun_instance*>(layers); }

const dtrun_backend& HierarchyBackend();

}  // namespace dtrun::comm
