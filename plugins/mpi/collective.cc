#include "collective.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"

namespace dtrun::mpi_plugin {
namespace {

void Copy(void* out, const void* in, std::uint64_t count, std::size_t width) {
  if (count > 0 && out != in) std::memmove(out, in, count * width);
}

std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

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
      if (team_.entry() == nullptr) api().MPI_Barrier(comm());
  }
}

BigType Collectives::Elements(std::int32_t dtype, std::uint64_t count) const {
  const std::size_t width = kernels::ElementBytes(dtype);
  return BigType(api(), team_.world().combiners().Mover(width), width, count, limit_);
}

bool Collectives::IsOwnBlock(const dtrun_op& op, const void* own, const void* all) const {
  return own == At(all, op.count * static_cast<std::uint64_t>(team_.rank()), kernels::ElementBytes(op.dtype));
}

void Collectives::Broadcast(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const MPI_Comm comm = CommFor(op.count * kernels::ElementBytes(op.dtype));
  api().MPI_Bcast(op.recv, block.count(), block.type(), op.root, comm);
}

void Collectives::Allgather(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const void* const send = IsOwnBlock(op, op.send, op.recv) ? MPI_IN_PLACE : op.send;
  api().MPI_Allgather(send, block.count(), block.type(), op.recv, block.count(), block.type(), comm());
}

void Collectives::Alltoall(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const void* const send = op.send == op.recv ? MPI_IN_PLACE : op.send;
  api().MPI_Alltoall(send, block.count(), block.type(), op.recv, block.count(), block.type(), comm());
}

void Collectives::Gather(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const bool in_place = team_.rank() == op.root && IsOwnBlock(op, op.send, op.recv);
  api().MPI_Gather(in_place ? MPI_IN_PLACE : op.send, block.count(), block.type(), op.recv, block.count(),
                   block.type(), op.root, comm());
}

void Collectives::Scatter(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const bool in_place = team_.rank() == op.root && IsOwnBlock(op, op.recv, op.send);
  api().MPI_Scatter(op.send, block.count(), block.type(), in_place ? MPI_IN_PLACE : op.recv, block.count(),
                    block.type(), op.root, comm());
}

// The counts are alike on all ranks, so all choose the same way; places are each rank's own.
void Collectives::Allgatherv(const dtrun_op& op) {
  const sdk::Parts parts = sdk::RecvParts(op, team_.rank(), team_.size());
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const sdk::Part& own = parts[Index(team_.rank())];
  if (sdk::SizeOf(parts) > limit_) return ExchangeParts(op);
  const bool direct = sdk::EndOf(parts) <= limit_;
  std::vector<int> counts, places;
  std::uint64_t next = 0;
  for (const sdk::Part& part : parts) {
    counts.push_back(static_cast<int>(part.size));
    // Where nothing is, a place may lie beyond the limit.
    places.push_back(static_cast<int>(direct && part.size > 0 ? part.begin : next));
    next += part.size;
  }
  void* const recv = direct ? op.recv : scratch_.Get(next * width);
  const bool in_place = direct && op.send == At(op.recv, own.begin, width);
  const MPI_Datatype type = team_.world().combiners().Mover(width);
  api().MPI_Allgatherv(in_place ? MPI_IN_PLACE : op.send, static_cast<int>(own.size), type, recv,
                       counts.data(), places.data(), type, comm());
  if (direct) return;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    Copy(At(op.recv, parts[rank].begin, width), At(recv, static_cast<std::uint64_t>(places[rank]), width),
         parts[rank].size, width);
  }
}

// Messages between pairs of ranks, who agree on their counts and on nothing else: no rank knows all counts of
// alltoallv, gatherv and scatterv, so none could tell whether they fit MPI's.
void Collectives::ExchangeParts(const dtrun_op& op) {
  const sdk::Parts gives = sdk::SendParts(op, team_.rank(), team_.size());
  const sdk::Parts takes = sdk::RecvParts(op, team_.rank(), team_.size());
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const void* send = op.send;
  if (op.kind == DTRUN_ALLTOALLV && op.send == op.recv) {
    void* const saved = scratch_.Get(sdk::EndOf(gives) * width);
    Copy(saved, op.send, sdk::EndOf(gives), width);
    send = saved;
  }
  std::vector<BigType> blocks;
  std::vector<MPI_Request> requests;
  const auto start = [&](const auto& call, auto* memory, const sdk::Part& part, int peer) {
    if (part.size == 0) return;
    const BigType& block = blocks.emplace_back(Elements(op.dtype, part.size));
    call(At(memory, part.begin, width), block.count(), block.type(), peer, 0, team_.handles().pieces,
         &requests.emplace_back());
  };
  // Beginning with the next rank, so that not all send to rank 0 first.
  for (int step = 1; step < team_.size(); ++step) {
    const int from = (team_.rank() + team_.size() - step) % team_.size();
    start(api().MPI_Irecv, op.recv, takes[Index(from)], from);
  }
  for (int step = 1; step < team_.size(); ++step) {
    const int to = (team_.rank() + step) % team_.size();
    start(api().MPI_Isend, send, gives[Index(to)], to);
  }
  const std::size_t own = Index(team_.rank());
  Copy(At(op.recv, takes[own].begin, width), At(send, gives[own].begin, width), takes[own].size, width);
  api().MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace dtrun::mpi_plugin
