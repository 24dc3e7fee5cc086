// The collective operations, written over transfers between pairs of ranks.
//
// Every rank runs the same call; each blocks the calling thread until this rank's part is
// done and throws sdk::Failure when the mesh fails. Ranks are connected pairwise, so parts
// travel directly: no rank relays what another could send itself (a big broadcast aside),
// and reductions always combine ranks 0, 1, 2 ... in that order, whatever the size.
#pragma once

#include "call.h"
#include "mesh.h"

namespace dtrun::gloo_plugin {

// Any of them; all work in a world of one.
void RunCollective(Mesh& mesh, Operation& operation, const CollectiveCall& call);

// Allreduce, reduce, reduce-scatter(v): reduce.cc.
void Allreduce(Mesh& mesh, Operation& operation, const CollectiveCall& call);
void Reduce(Mesh& mesh, Operation& operation, const CollectiveCall& call);
void ReduceScatter(Mesh& mesh, Operation& operation, const CollectiveCall& call);

// What only moves: move.cc. Exchange serves allgather, gather, scatter, alltoall and their "v"
// forms: each pair of ranks swaps what call.sends and call.recvs say.
void Exchange(Mesh& mesh, Operation& operation, const CollectiveCall& call);
void Broadcast(Mesh& mesh, Operation& operation, const CollectiveCall& call);
void DisseminationBarrier(Mesh& mesh, Operation& operation, std::uint64_t slot);

}  // namespace dtrun::gloo_plugin
