#include <limits>
#include <string>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::algorithms {
namespace {

using sdk::Failure;

[[noreturn]] void Refuse(const dtrun_op& op, const std::string& why) {
  throw Failure(DTRUN_INVALID_ARGUMENT, std::string(sdk::OperationName(op.kind)) + ": " + why);
}

bool Reduces(std::int32_t kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}

bool HasRoot(std::int32_t kind) {
  return kind == DTRUN_BROADCAST || kind == DTRUN_REDUCE || kind == DTRUN_GATHER || kind == DTRUN_GATHERV ||
         kind == DTRUN_SCATTER || kind == DTRUN_SCATTERV;
}

// What one buffer of an operation must hold, in elements.
class Buffers {
 public:
  Buffers(const dtrun_op& op, int rank, int size)
      : op_(op),
        ranks_(static_cast<std::uint64_t>(size)),
        rank_(static_cast<std::size_t>(rank)),
        at_root_(rank == op.root),
        most_(std::numeric_limits<std::ptrdiff_t>::max() / kernels::ElementBytes(op.dtype)) {}

  std::uint64_t Send() const {
    switch (op_.kind) {
      case DTRUN_BROADCAST:
      case DTRUN_RECV: return 0;
      case DTRUN_REDUCE_SCATTER:
      case DTRUN_ALLTOALL: return All();
      case DTRUN_SCATTER: return at_root_ ? All() : 0;
      case DTRUN_ALLGATHERV: return At("recv_counts", op_.recv_counts);
      case DTRUN_REDUCE_SCATTERV: return Sum("recv_counts", op_.recv_counts, op_.recv_offsets);
      case DTRUN_ALLTOALLV: return Sum("send_counts", op_.send_counts, op_.send_offsets);
      case DTRUN_SCATTERV: return at_root_ ? Sum("send_counts", op_.send_counts, op_.send_offsets) : 0;
      default: return One();
    }
  }
  std::uint64_t Recv() const {
    switch (op_.kind) {
      case DTRUN_SEND: return 0;
      case DTRUN_ALLGATHER:
      case DTRUN_ALLTOALL: return All();
      case DTRUN_REDUCE: return at_root_ ? One() : 0;
      case DTRUN_GATHER: return at_root_ ? All() : 0;
      case DTRUN_ALLGATHERV:
      case DTRUN_ALLTOALLV: return Sum("recv_counts", op_.recv_counts, op_.recv_offsets);
      case DTRUN_GATHERV: return at_root_ ? Sum("recv_counts", op_.recv_counts, op_.recv_offsets) : 0;
      case DTRUN_REDUCE_SCATTERV: return At("recv_counts", op_.recv_counts);
      default: return One();
    }
  }

 private:
  std::uint64_t Fitting(std::uint64_t elements) const {
    if (elements > most_) Refuse(op_, std::to_string(elements) + " elements do not fit the address space");
    return elements;
  }
  std::uint64_t One() const { return Fitting(op_.count); }
  std::uint64_t All() const {
    if (op_.count > most_ / ranks_) {
      Refuse(op_, std::to_string(ranks_) + " times " + std::to_string(op_.count) +
                      " elements do not fit the address space");
    }
    return op_.count * ranks_;
  }
  void Need(const char* name, const std::uint64_t* counts) const {
    if (counts == nullptr) Refuse(op_, std::string(name) + " is null; give one count for each rank");
  }
  std::uint64_t At(const char* name, const std::uint64_t* counts) const {
    Need(name, counts);
    return Fitting(counts[rank_]);
  }
  // Elements that are touched; parts may lie anywhere within the address space.
  std::uint64_t Sum(const char* name, const std::uint64_t* counts, const std::uint64_t* offsets) const {
    Need(name, counts);
    std::uint64_t sum = 0;
    for (std::uint64_t rank = 0; rank < ranks_; ++rank) {
      sum = Fitting(sum + Fitting(counts[rank]));
      if (offsets != nullptr) Fitting(Fitting(offsets[rank]) + counts[rank]);
    }
    return sum;
  }

  const dtrun_op& op_;
  const std::uint64_t ranks_;
  const std::size_t rank_;
  const bool at_root_;
  const std::uint64_t most_;
};

void CheckBuffer(const dtrun_op& op, const char* name, const void* data, std::uint64_t elements) {
  if (elements == 0) return;
  if (data == nullptr) Refuse(op, std::string("the ") + name + " buffer is null");
  const std::size_t alignment = kernels::ElementAlignment(op.dtype);
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    Refuse(op, std::string("the ") + name + " buffer is not aligned to " + std::to_string(alignment) +
                   " bytes, as its element type needs");
  }
}

void CheckRanks(const dtrun_op& op, int size) {
  const auto in_world = [&](int rank) { return rank >= 0 && rank < size; };
  const std::string world = "; the communicator has " + std::to_string(size) + " ranks, the first is 0";
  if (HasRoot(op.kind) && !in_world(op.root)) Refuse(op, "no rank " + std::to_string(op.root) + world);
  const bool anyone = op.kind == DTRUN_RECV && op.peer == DTRUN_ANY_SOURCE;
  if (!IsCollective(op.kind) && !anyone && !in_world(op.peer)) {
    Refuse(op, "no rank " + std::to_string(op.peer) + world);
  }
}

}  // namespace

bool IsCollective(std::int32_t kind) {
  return kind > 0 && kind < DTRUN_OP_COUNT && kind != DTRUN_SEND && kind != DTRUN_RECV;
}

void CheckOperation(const dtrun_op& op, int rank, int size) {
  if (op.kind <= 0 || op.kind >= DTRUN_OP_COUNT) {
    throw Failure(DTRUN_UNSUPPORTED, "operation " + std::to_string(op.kind) + " is unknown to this plugin");
  }
  CheckRanks(op, size);
  if (op.kind == DTRUN_BARRIER) return;
  if (kernels::ElementBytes(op.dtype) == 0) Refuse(op, "unknown element type " + std::to_string(op.dtype));
  if (Reduces(op.kind) && !kernels::Supports(op.dtype, op.reduce)) {
    const bool known = op.reduce > 0 && op.reduce < DTRUN_REDUCE_COUNT;
    Refuse(op, known ? "reduction " + std::to_string(op.reduce) + " has no meaning for element type " +
                           std::to_string(op.dtype) + "; dtrun/abi/types.h has the table"
                     : "unknown reduction " + std::to_string(op.reduce));
  }
  const Buffers buffers(op, rank, size);
  CheckBuffer(op, "send", op.send, buffers.Send());
  CheckBuffer(op, "recv", op.recv, buffers.Recv());
}

}  // namespace dtrun::algorithms
