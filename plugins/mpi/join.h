// How the ranks of a communicator find each other: in the key-value space, in MPI, and on
// the page that they share. Runs on the thread that makes the communicator.
#pragma once

#include <memory>

#include "dtrun/plugin/process_watch.hpp"
#include "entry_barrier.h"
#include "world.h"

namespace dtrun::mpi_plugin {

// Several contexts, so that the plugin's own messages never meet the user's: MPI's collectives;
// the pieces that collectives are made of here; messages whose tag has its uppermost bit set.
// Other messages share a context with MPI's collectives, which MPI keeps apart.
struct Handles {
  MPI_Comm main;
  MPI_Comm pieces;
  MPI_Comm high;
  MPI_Comm bulk;  // for kBulk bytes and more: of Open MPI's shared-memory collectives, or main
};

struct Joined {
  Handles handles;
  std::unique_ptr<EntryBarrier> entry;  // null where ranks share no memory
  sdk::ProcessWatch processes;          // of the other ranks; none without an entry barrier
};

// REQUIRES params.size > 1. Throws when a rank does not come before params.timeout has
// passed, and when the processes are not those of one MPI job.
Joined Join(const sdk::Host& host, const sdk::CommParams& params, World& world, CollSm coll_sm);

}  // namespace dtrun::mpi_plugin
