// Operations that only move elements.
#include <cstring>

#include "collective.h"
#include "dtrun/kernels.hpp"

namespace dtrun::mpi_plugin {
namespace {

void Copy(void* out, const void* in, std::uint64_t count, std::size_t width) {
  if (count > 0 && out != in) std::memmove(out, in, count * width);
}

std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

// Messages between pairs of ranks that make up one collective. The ranks of a pair agree on
// their counts, and on nothing else; so this carries what one count of MPI cannot.
class Collectives::Exchange {
 public:
  explicit Exchange(Collectives& collectives, std::int32_t dtype)
      : collectives_(collectives), dtype_(dtype) {}

  void Send(int peer, const void* memory, std::uint64_t count) {
    if (count == 0) return;
    const BigType& block = blocks_.emplace_back(collectives_.Elements(dtype_, count));
    MPI_Request request;
    api().Check(api().isend(memory, block.count(), block.type(), peer, 0, comm(), &request), "MPI_Isend");
    requests_.push_back(request);
  }
  void Receive(int peer, void* memory, std::uint64_t count) {
    if (count == 0) return;
    const BigType& block = blocks_.emplace_back(collectives_.Elements(dtype_, count));
    MPI_Request request;
    api().Check(api().irecv(memory, block.count(), block.type(), peer, 0, comm(), &request), "MPI_Irecv");
    requests_.push_back(request);
  }
  void Wait() {
    api().Check(api().waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
                "MPI_Waitall");
  }

 private:
  const Api& api() const { return collectives_.api(); }
  MPI_Comm comm() const { return collectives_.team_.handles().pieces; }

  Collectives& collectives_;
  const std::int32_t dtype_;
  std::vector<BigType> blocks_;
  std::vector<MPI_Request> requests_;
};

BigType Collectives::Elements(std::int32_t dtype, std::uint64_t count) const {
  const std::size_t width = kernels::ElementBytes(dtype);
  return BigType(api(), team_.world().combiners().Mover(width), width, count, limit_);
}

void Collectives::Broadcast(const Call& call) {
  const dtrun_op& op = call.op;
  const BigType block = Elements(op.dtype, op.count);
  const MPI_Comm comm = CommFor(op.count * kernels::ElementBytes(op.dtype));
  api().Check(api().bcast(op.recv, block.count(), block.type(), op.root, comm), "MPI_Bcast");
}

void Collectives::Allgather(const Call& call) {
  const dtrun_op& op = call.op;
  const BigType block = Elements(op.dtype, op.count);
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const std::uint64_t place = op.count * static_cast<std::uint64_t>(team_.rank());
  const void* const send = op.send == At(op.recv, place, width) ? MPI_IN_PLACE : op.send;
  api().Check(
      api().allgather(send, block.count(), block.type(), op.recv, block.count(), block.type(), comm()),
      "MPI_Allgather");
}

void Collectives::Alltoall(const Call& call) {
  const dtrun_op& op = call.op;
  const BigType block = Elements(op.dtype, op.count);
  const void* const send = op.send == op.recv ? MPI_IN_PLACE : op.send;
  api().Check(api().alltoall(send, block.count(), block.type(), op.recv, block.count(), block.type(), comm()),
              "MPI_Alltoall");
}

void Collectives::Gather(const Call& call) {
  const dtrun_op& op = call.op;
  const BigType block = Elements(op.dtype, op.count);
  const std::uint64_t place = op.count * static_cast<std::uint64_t>(team_.rank());
  const bool in_place =
      team_.rank() == op.root && op.send == At(op.recv, place, kernels::ElementBytes(op.dtype));
  api().Check(api().gather(in_place ? MPI_IN_PLACE : op.send, block.count(), block.type(), op.recv,
                           block.count(), block.type(), op.root, comm()),
              "MPI_Gather");
}

void Collectives::Scatter(const Call& call) {
  const dtrun_op& op = call.op;
  const BigType block = Elements(op.dtype, op.count);
  const std::uint64_t place = op.count * static_cast<std::uint64_t>(team_.rank());
  const bool in_place =
      team_.rank() == op.root && op.recv == At(op.send, place, kernels::ElementBytes(op.dtype));
  api().Check(api().scatter(op.send, block.count(), block.type(), in_place ? MPI_IN_PLACE : op.recv,
                            block.count(), block.type(), op.root, comm()),
              "MPI_Scatter");
}

// The counts are alike on all ranks, so all choose the same way; places are each rank's own.
void Collectives::Allgatherv(const Call& call) {
  const dtrun_op& op = call.op;
  const Parts& parts = call.recv;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const std::size_t own = Index(team_.rank());
  if (parts.Total() > limit_) {
    Copy(At(op.recv, parts.offsets[own], width), op.send, parts.counts[own], width);
    for (int root = 0; root < team_.size(); ++root) {
      const BigType block = Elements(op.dtype, parts.counts[Index(root)]);
      api().Check(api().bcast(At(op.recv, parts.offsets[Index(root)], width), block.count(), block.type(),
                              root, comm()),
                  "MPI_Bcast");
    }
    return;
  }
  const bool direct = parts.End() <= limit_;
  const std::vector<int> counts(parts.counts.begin(), parts.counts.end());
  std::vector<int> places;
  std::uint64_t next = 0;
  for (std::size_t rank = 0; rank < parts.counts.size(); ++rank) {
    places.push_back(static_cast<int>(direct ? parts.offsets[rank] : next));
    next += parts.counts[rank];
  }
  void* const recv = direct ? op.recv : scratch_.Get(next * width);
  const bool in_place = direct && op.send == At(op.recv, parts.offsets[own], width);
  const MPI_Datatype type = team_.world().combiners().Mover(width);
  api().Check(api().allgatherv(in_place ? MPI_IN_PLACE : op.send, counts[own], type, recv, counts.data(),
                               places.data(), type, comm()),
              "MPI_Allgatherv");
  if (direct) return;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    Copy(At(op.recv, parts.offsets[rank], width), At(recv, static_cast<std::uint64_t>(places[rank]), width),
         parts.counts[rank], width);
  }
}

// No rank knows all counts of the next three, so none could tell whether they fit MPI's.
void Collectives::Alltoallv(const Call& call) {
  const dtrun_op& op = call.op;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const void* send = op.send;
  if (op.send == op.recv) {
    void* const saved = scratch_.Get(call.send.End() * width);
    Copy(saved, op.send, call.send.End(), width);
    send = saved;
  }
  Exchange exchange(*this, op.dtype);
  // Beginning with the next rank, so that not all send to rank 0 first.
  for (int step = 1; step < team_.size(); ++step) {
    const int from = (team_.rank() + team_.size() - step) % team_.size();
    exchange.Receive(from, At(op.recv, call.recv.offsets[Index(from)], width), call.recv.counts[Index(from)]);
  }
  for (int step = 1; step < team_.size(); ++step) {
    const int to = (team_.rank() + step) % team_.size();
    exchange.Send(to, At(send, call.send.offsets[Index(to)], width), call.send.counts[Index(to)]);
  }
  const std::size_t own = Index(team_.rank());
  Copy(At(op.recv, call.recv.offsets[own], width), At(send, call.send.offsets[own], width),
       call.recv.counts[own], width);
  exchange.Wait();
}

void Collectives::Gatherv(const Call& call) {
  const dtrun_op& op = call.op;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  Exchange exchange(*this, op.dtype);
  if (team_.rank() != op.root) {
    exchange.Send(op.root, op.send, op.count);
  } else {
    for (int rank = 0; rank < team_.size(); ++rank) {
      void* const place = At(op.recv, call.recv.offsets[Index(rank)], width);
      if (rank == op.root) {
        Copy(place, op.send, op.count, width);
      } else {
        exchange.Receive(rank, place, call.recv.counts[Index(rank)]);
      }
    }
  }
  exchange.Wait();
}

void Collectives::Scatterv(const Call& call) {
  const dtrun_op& op = call.op;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  Exchange exchange(*this, op.dtype);
  if (team_.rank() != op.root) {
    exchange.Receive(op.root, op.recv, op.count);
  } else {
    for (int rank = 0; rank < team_.size(); ++rank) {
      const void* const place = At(op.send, call.send.offsets[Index(rank)], width);
      if (rank == op.root) {
        Copy(op.recv, place, op.count, width);
      } else {
        exchange.Send(rank, place, call.send.counts[Index(rank)]);
      }
    }
  }
  exchange.Wait();
}

}  // namespace dtrun::mpi_plugin
