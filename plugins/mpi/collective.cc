#include "collective.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "dtrun/kernels.hpp"

namespace dtrun::mpi_plugin {

void Scratch::Free::operator()(void* memory) const { std::free(memory); }

void* Scratch::Get(std::size_t bytes) {
  if (bytes <= bytes_ && memory_) return memory_.get();
  memory_.reset();
  bytes_ = 0;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kCacheLine - 1) / kCacheLine * kCacheLine;
  memory_.reset(std::aligned_alloc(kCacheLine, rounded));
  if (!memory_) throw std::bad_alloc();
  bytes_ = rounded;
  return memory_.get();
}

void Collectives::Run(const Call& call) {
  if (team_.size() == 1) return RunAlone(call);
  switch (call.op.kind) {
    case DTRUN_ALLREDUCE: return Allreduce(call);
    case DTRUN_REDUCE: return Reduce(call);
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV: return ReduceScatter(call);
    case DTRUN_BROADCAST: return Broadcast(call);
    case DTRUN_ALLGATHER: return Allgather(call);
    case DTRUN_ALLTOALL: return Alltoall(call);
    case DTRUN_GATHER: return Gather(call);
    case DTRUN_SCATTER: return Scatter(call);
    case DTRUN_ALLGATHERV: return Allgatherv(call);
    case DTRUN_ALLTOALLV: return Alltoallv(call);
    case DTRUN_GATHERV: return Gatherv(call);
    case DTRUN_SCATTERV: return Scatterv(call);
    default:
      // Those who met have been through a barrier already.
      if (team_.meeting() == nullptr) api().Check(api().barrier(comm()), "MPI_Barrier");
  }
}

// A communicator of one: what it sends is what it gets.
void Collectives::RunAlone(const Call& call) {
  const dtrun_op& op = call.op;
  if (op.kind == DTRUN_BARRIER || op.kind == DTRUN_BROADCAST) return;
  const auto first = [](const Parts& parts) { return parts.offsets.empty() ? 0 : parts.offsets[0]; };
  const std::size_t width = kernels::ElementBytes(op.dtype);
  // Of a reduce-scatter, recv_counts describe what is sent.
  const bool reduces =
      op.reduce != 0 && (op.kind == DTRUN_ALLREDUCE || op.kind == DTRUN_REDUCE ||
                         op.kind == DTRUN_REDUCE_SCATTER || op.kind == DTRUN_REDUCE_SCATTERV);
  const std::uint64_t from = reduces ? first(call.recv) : first(call.send);
  const std::uint64_t to = reduces ? 0 : first(call.recv);
  const std::uint64_t count = !call.recv.counts.empty()   ? call.recv.counts[0]
                              : !call.send.counts.empty() ? call.send.counts[0]
                                                          : op.count;
  if (count == 0) return;
  const void* const send = static_cast<const char*>(op.send) + from * width;
  void* const recv = static_cast<char*>(op.recv) + to * width;
  if (!reduces) {
    if (send != recv) std::memmove(recv, send, count * width);
  } else if (op.reduce == DTRUN_PREMUL_SUM) {
    kernels::Scale(recv, send, count, op.dtype, op.scale);
  } else {
    kernels::ReduceFor(op.dtype, op.reduce)(recv, &send, 1, count);
  }
}

}  // namespace dtrun::mpi_plugin
