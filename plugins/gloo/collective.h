// The collective operations, written over transfers between pairs of ranks.
//
// Every rank runs the same call; each blocks the calling thread until this rank's part is
// done and throws sdk::Failure when the mesh fails. Ranks are connected pairwise, so parts
// travel directly: no rank relays what another could send itself (a big broadcast aside),
// and reductions always combine ranks 0, 1, 2 ... in that order, whatever the size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"
#include "mesh.h"

namespace dtrun::gloo_plugin {

// What one collective moves. `slot` is unused by any other operation under way and leaves
// the lowest four bits free.
struct CollectiveCall {
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // as types.h defines it for the operation; not 0
  std::size_t width = 1;  // bytes of an element
  std::uint64_t slot = 0;
};

// Buffers may be in place as dtrun/abi/backend.h describes it. All work in a world of one.
void Allreduce(Mesh& mesh, Operation& operation, const CollectiveCall& call, ReduceKernel kernel);
void ReduceScatter(Mesh& mesh, Operation& operation, const CollectiveCall& call, ReduceKernel kernel);
void Allgather(Mesh& mesh, Operation& operation, const CollectiveCall& call);
void Broadcast(Mesh& mesh, Operation& operation, const CollectiveCall& call, int root);
void DisseminationBarrier(Mesh& mesh, Operation& operation, std::uint64_t slot);

}  // namespace dtrun::gloo_plugin
