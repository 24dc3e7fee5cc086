// The algorithms, one function each; run.cc selects one by operation and size.
//
// Every rank of a communicator calls the same function; each blocks until this rank's part is done.
// Buffers may be in place as dtrun/abi/backend.h describes it. REQUIRES at least two ranks.
#pragma once

#include "call.h"
#include "reducer.h"

namespace dtrun::algorithms {

// Up to this many bytes, each step combines the whole vector.
inline constexpr std::size_t kDoublingBytes = 16 << 10;

// ---- all elements combined, on every rank ----
// log2(n) steps with the whole vector in each: for small vectors.
void DoublingAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count);
// Reduce-scatter by recursive halving, allgather by recursive doubling: 2 log2(n) steps, 2 S bytes.
void HalvingAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count);
// 2 (n - 1) steps round the ring, pipelined in segments: for large vectors. REQUIRES
// !reducer.narrow().
void RingAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count);
// Every rank sends part r to rank r, which combines all copies at once and sends the result back.
// There are no partial results, so 16-bit elements are sent unchanged. REQUIRES reducer.raw().
void DirectAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count);

// ---- part r combined on rank r ----
// Part r of `send` is parts[r]; `recv` holds parts[rank].size elements.
void PackedReduceScatter(Call& call, const Reducer& reducer, const void* send, void* recv,
                         const sdk::Parts& parts);
void RingReduceScatter(Call& call, const Reducer& reducer, const void* send, void* recv,
                       const sdk::Parts& parts);
void DirectReduceScatter(Call& call, const Reducer& reducer, const void* send, void* recv,
                         const sdk::Parts& parts);

// ---- combined on the root ----
void TreeReduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count,
                int root);
// Reduce-scatter, then the root collects the parts.
void ScatteredReduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count,
                     int root);

// ---- moved only; sizes in bytes ----
void TreeBroadcast(Call& call, void* data, std::size_t bytes, int root);
// The root scatters the parts, which then travel round the ring.
void DealtBroadcast(Call& call, void* data, std::size_t bytes, int root);

// Equal parts of `bytes`; this rank's is in `send`. ceil(log2(n)) steps.
void BruckAllgather(Call& call, const void* send, void* recv, std::size_t bytes);
// Part r goes to parts[r] of `recv` (bytes); this rank's part is already in place. Rank `full` has
// all parts and receives none; -1: no such rank.
void RingAllgather(Call& call, void* recv, const sdk::Parts& parts, int full = -1);

// Part r of the root's `recv` (bytes) comes from rank r's `send`.
void TreeGather(Call& call, const void* send, void* recv, std::size_t bytes, int root);
void LinearGather(Call& call, const void* send, std::size_t bytes, void* recv, const sdk::Parts& parts,
                  int root);
void TreeScatter(Call& call, const void* send, void* recv, std::size_t bytes, int root);
void LinearScatter(Call& call, const void* send, const sdk::Parts& parts, void* recv, std::size_t bytes,
                   int root);

// Part r of `send` goes to rank r, part r of `recv` is received from it (bytes). If `send` ==
// `recv`, both lists of parts must be equal.
void PairwiseAlltoall(Call& call, const void* send, const sdk::Parts& send_parts, void* recv,
                      const sdk::Parts& recv_parts);

void DisseminationBarrier(Call& call);

}  // namespace dtrun::algorithms
