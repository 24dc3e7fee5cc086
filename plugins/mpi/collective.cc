#include "collective.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "dtrun/algorithms.hpp"

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

void Collectives::Run(const dtrun_op& op) {
  if (team_.size() == 1) return algorithms::RunAlone(op);
  switch (op.kind) {
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE: return Reduce(op);
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV: return ReduceScatter(op);
    case DTRUN_BROADCAST: return Broadcast(op);
    case DTRUN_ALLGATHER: return Allgather(op);
    case DTRUN_ALLTOALL: return Alltoall(op);
    case DTRUN_GATHER: return Gather(op);
    case DTRUN_SCATTER: return Scatter(op);
    case DTRUN_ALLGATHERV: return Allgatherv(op);
    case DTRUN_ALLTOALLV:
    case DTRUN_GATHERV:
    case DTRUN_SCATTERV: return ExchangeParts(op);
    default:
      // Those who met have been through a barrier already.
      if (team_.entry() == nullptr) api().Check(api().barrier(comm()), "MPI_Barrier");
  }
}

}  // namespace dtrun::mpi_plugin
