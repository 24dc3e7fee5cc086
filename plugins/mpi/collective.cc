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
      if (team_.entry() == nullptr) api().Check(api().barrier(comm()), "MPI_Barrier");
  }
}

BigType Collectives::Elements(std::int32_t dtype, std::uint64_t count) const {
  const std::size_t width = kernels::ElementBytes(dtype);
  return BigType(api(), team_.world().combiners().Mover(width), width, count, limit_);
}

void Collectives::Broadcast(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const MPI_Comm comm = CommFor(op.count * kernels::ElementBytes(op.dtype));
  api().Check(api().bcast(op.recv, block.count(), block.type(), op.root, comm), "MPI_Bcast");
}

void Collectives::Allgather(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const std::uint64_t place = op.count * static_cast<std::uint64_t>(team_.rank());
  const void* const send = op.send == At(op.recv, place, width) ? MPI_IN_PLACE : op.send;
  api().Check(
      api().allgather(send, block.count(), block.type(), op.recv, block.count(), block.type(), comm()),
      "MPI_Allgather");
}

void Collectives::Alltoall(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const void* const send = op.send == op.recv ? MPI_IN_PLACE : op.send;
  api().Check(api().alltoall(send, block.count(), block.type(), op.recv, block.count(), block.type(), comm()),
              "MPI_Alltoall");
}

void Collectives::Gather(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const std::uint64_t place = op.count * static_cast<std::uint64_t>(team_.rank());
  const bool in_place =
      team_.rank() == op.root && op.send == At(op.recv, place, kernels::ElementBytes(op.dtype));
  api().Check(api().gather(in_place ? MPI_IN_PLACE : op.send, block.count(), block.type(), op.recv,
                           block.count(), block.type(), op.root, comm()),
              "MPI_Gather");
}

void Collectives::Scatter(const dtrun_op& op) {
  const BigType block = Elements(op.dtype, op.count);
  const std::uint64_t place = op.count * static_cast<std::uint64_t>(team_.rank());
  const bool in_place =
      team_.rank() == op.root && op.recv == At(op.send, place, kernels::ElementBytes(op.dtype));
  api().Check(api().scatter(op.send, block.count(), block.type(), in_place ? MPI_IN_PLACE : op.recv,
                            block.count(), block.type(), op.root, comm()),
              "MPI_Scatter");
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
  api().Check(api().allgatherv(in_place ? MPI_IN_PLACE : op.send, static_cast<int>(own.size), type, recv,
                               counts.data(), places.data(), type, comm()),
              "MPI_Allgatherv");
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
  const auto start = [&](auto* call, const char* name, auto* memory, const sdk::Part& part, int peer) {
    if (part.size == 0) return;
    const BigType& block = blocks.emplace_back(Elements(op.dtype, part.size));
    api().Check(call(At(memory, part.begin, width), block.count(), block.type(), peer, 0,
                     team_.handles().pieces, &requests.emplace_back()),
                name);
  };
  // Beginning with the next rank, so that not all send to rank 0 first.
  for (int step = 1; step < team_.size(); ++step) {
    const int from = (team_.rank() + team_.size() - step) % team_.size();
    start(api().irecv, "MPI_Irecv", op.recv, takes[Index(from)], from);
  }
  for (int step = 1; step < team_.size(); ++step) {
    const int to = (team_.rank() + step) % team_.size();
    start(api().isend, "MPI_Isend", send, gives[Index(to)], to);
  }
  const std::size_t own = Index(team_.rank());
  Copy(At(op.recv, takes[own].begin, width), At(send, gives[own].begin, width), takes[own].size, width);
  api().Check(api().waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
}

}  // namespace dtrun::mpi_plugin
