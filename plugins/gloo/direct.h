// Collectives in which every rank exchanges with all others at once. They are faster than dtrun::algorithms
// over Gloo, which needs every receive posted before the data arrives (tools/bench/history.md has
// the figures).
//
// Reductions of more than 128 KiB in all: rank r combines part r of all ranks, always in the order 0, 1, 2
// ... Part r is cut into segments. While one segment is combined the next is on its way; an allreduce sends a
// combined segment back at once, a reduce to the root. And what each pair of ranks swaps: allgather, gather,
// scatter, alltoall.
//
// Blocks the thread that runs the collective, and throws sdk::Failure when the mesh fails.
#pragma once

#include <cstdint>

#include "mesh.h"

namespace dtrun::gloo_plugin {

// Whether `op` is such a collective.
bool ServesDirectly(const dtrun_op& op, int ranks);
// REQUIRES ServesDirectly. `slot` and the next one belong to no other operation under way.
void RunDirectly(Mesh& mesh, Operation& operation, const dtrun_op& op, std::uint64_t slot);

}  // namespace dtrun::gloo_plugin
