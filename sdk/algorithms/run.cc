// Selects the algorithm for an operation. All ranks must choose the same one, so the choice depends
// only on the operation's kind, type, reduction and counts as all ranks know them.
#include <algorithm>
#include <cstring>
#include <string>

#include "collectives.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::algorithms {
namespace {

// A larger vector is split into segments that travel round a ring.
constexpr std::size_t kRingBytes = 512 << 10;
// Between two ranks a whole vector costs no more bytes than two halves, and saves a step; but each
// rank then combines all of it.
constexpr std::size_t kPairBytes = 128 << 10;
// 16-bit elements are exchanged directly among at most this many ranks, or when parts are this
// large.
constexpr int kDirectRanks = 16;
constexpr std::size_t kDirectPartBytes = 16 << 10;
constexpr std::size_t kTreeBroadcastBytes = 64 << 10;
constexpr std::size_t kBruckBytes = 64 << 10;  // size of the gathered vector
// A tree saves messages at the root but costs every rank copies.
constexpr std::size_t kTreeGatherBytes = 16 << 10;
constexpr int kTreeGatherRanks = 5;

bool PrefersDirect(const Reducer& reducer, std::size_t bytes, int ranks) {
  return reducer.narrow() && reducer.raw() &&
         (ranks <= kDirectRanks || bytes / static_cast<std::size_t>(ranks) >= kDirectPartBytes);
}

void Allreduce(Call& call, const dtrun_op& op) {
  const Reducer reducer(op, call.size());
  const std::size_t bytes = op.count * reducer.width();
  if (bytes <= (call.size() == 2 ? kPairBytes : kDoublingBytes))
    return DoublingAllreduce(call, reducer, op.send, op.recv, op.count);
  if (PrefersDirect(reducer, bytes, call.size())) {
    return DirectAllreduce(call, reducer, op.send, op.recv, op.count);
  }
  if (reducer.narrow() || bytes <= kRingBytes) {
    return HalvingAllreduce(call, reducer, op.send, op.recv, op.count);
  }
  RingAllreduce(call, reducer, op.send, op.recv, op.count);
}

void Reduce(Call& call, const dtrun_op& op) {
  const Reducer reducer(op, call.size());
  const bool partwise = !reducer.narrow() || reducer.raw();
  if (partwise && op.count * reducer.width() > kRingBytes) {
    return ScatteredReduce(call, reducer, op.send, op.recv, op.count, op.root);
  }
  TreeReduce(call, reducer, op.send, op.recv, op.count, op.root);
}

void ReduceScatter(Call& call, const dtrun_op& op) {
  const Reducer reducer(op, call.size());
  const sdk::Parts parts = sdk::SendParts(op, call.rank(), call.size());
  const std::size_t bytes = sdk::SizeOf(parts) * reducer.width();
  const bool small = bytes <= kDoublingBytes;
  if (!small && PrefersDirect(reducer, bytes, call.size())) {
    return DirectReduceScatter(call, reducer, op.send, op.recv, parts);
  }
  if (small || reducer.narrow()) return PackedReduceScatter(call, reducer, op.send, op.recv, parts);
  RingReduceScatter(call, reducer, op.send, op.recv, parts);
}

void Broadcast(Call& call, const dtrun_op& op) {
  const std::size_t bytes = op.count * kernels::ElementBytes(op.dtype);
  if (bytes <= kTreeBroadcastBytes || call.size() == 2) return TreeBroadcast(call, op.recv, bytes, op.root);
  DealtBroadcast(call, op.recv, bytes, op.root);
}

void Allgather(Call& call, const dtrun_op& op) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  if (op.kind == DTRUN_ALLGATHER && op.count * width * static_cast<std::size_t>(call.size()) <= kBruckBytes) {
    if (op.count > 0) BruckAllgather(call, op.send, op.recv, op.count * width);
    return;
  }
  const sdk::Parts parts = sdk::InBytes(sdk::RecvParts(op, call.rank(), call.size()), width);
  const Part& own = parts[static_cast<std::size_t>(call.rank())];
  std::byte* const place = static_cast<std::byte*>(op.recv) + own.begin;
  if (own.size > 0 && place != op.send) std::memcpy(place, op.send, own.size);
  RingAllgather(call, op.recv, parts);
}

bool PrefersTree(const Call& call, std::size_t bytes) {
  return call.size() >= kTreeGatherRanks && bytes <= kTreeGatherBytes;
}

void Gather(Call& call, const dtrun_op& op) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const std::size_t bytes = op.count * width;
  if (op.kind == DTRUN_GATHER && PrefersTree(call, bytes)) {
    if (bytes > 0) TreeGather(call, op.send, op.recv, bytes, op.root);
    return;
  }
  const sdk::Parts parts = sdk::InBytes(sdk::RecvParts(op, call.rank(), call.size()), width);
  LinearGather(call, op.send, bytes, op.recv, parts, op.root);
}

void Scatter(Call& call, const dtrun_op& op) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const std::size_t bytes = op.count * width;
  if (op.kind == DTRUN_SCATTER && PrefersTree(call, bytes)) {
    if (bytes > 0) TreeScatter(call, op.send, op.recv, bytes, op.root);
    return;
  }
  const sdk::Parts parts = sdk::InBytes(sdk::SendParts(op, call.rank(), call.size()), width);
  LinearScatter(call, op.send, parts, op.recv, bytes, op.root);
}

void Alltoall(Call& call, const dtrun_op& op) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const sdk::Parts send_parts = sdk::InBytes(sdk::SendParts(op, call.rank(), call.size()), width);
  const sdk::Parts recv_parts = sdk::InBytes(sdk::RecvParts(op, call.rank(), call.size()), width);
  PairwiseAlltoall(call, op.send, send_parts, op.recv, recv_parts);
}

void Run(Call& call, const dtrun_op& op) {
  switch (op.kind) {
    case DTRUN_ALLREDUCE: return op.count > 0 ? Allreduce(call, op) : void();
    case DTRUN_REDUCE: return op.count > 0 ? Reduce(call, op) : void();
    case DTRUN_BROADCAST: return op.count > 0 ? Broadcast(call, op) : void();
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV: return ReduceScatter(call, op);
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV: return Allgather(call, op);
    case DTRUN_GATHER:
    case DTRUN_GATHERV: return Gather(call, op);
    case DTRUN_SCATTER:
    case DTRUN_SCATTERV: return Scatter(call, op);
    case DTRUN_ALLTOALL:
    case DTRUN_ALLTOALLV: return Alltoall(call, op);
    case DTRUN_BARRIER: return DisseminationBarrier(call);
    default: break;  // RunCollective has rejected it
  }
}

}  // namespace

void RunCollective(Messenger& messenger, const dtrun_op& op) {
  if (!sdk::IsKnown(op.kind) || !sdk::IsCollective(op.kind)) {
    throw sdk::Failure(DTRUN_INTERNAL,
                       std::string(sdk::OperationName(op.kind)) + " (kind " + std::to_string(op.kind) +
                           ") is no collective; pass it to the transport, not to RunCollective");
  }
  if (messenger.size() == 1) return RunAlone(op);
  Call call(messenger);
  Run(call, op);
  call.Done();
}

}  // namespace dtrun::algorithms
