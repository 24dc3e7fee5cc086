#include "call.h"

#include <limits>
#include <string>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"
#include "text.h"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

[[noreturn]] void Refuse(const dtrun_op& op, const std::string& why,
                         dtrun_status status = DTRUN_INVALID_ARGUMENT) {
  throw Failure(status, std::string(sdk::OperationName(op.kind)) + ": " + why);
}

bool Reduces(std::int32_t kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}

bool HasRoot(std::int32_t kind) {
  return kind == DTRUN_BROADCAST || kind == DTRUN_REDUCE || kind == DTRUN_GATHER || kind == DTRUN_SCATTER ||
         kind == DTRUN_GATHERV || kind == DTRUN_SCATTERV;
}

bool NeedsSendCounts(const dtrun_op& op, bool root) {
  return op.kind == DTRUN_ALLTOALLV || (op.kind == DTRUN_SCATTERV && root);
}

bool NeedsRecvCounts(const dtrun_op& op, bool root) {
  return op.kind == DTRUN_ALLGATHERV || op.kind == DTRUN_REDUCE_SCATTERV || op.kind == DTRUN_ALLTOALLV ||
         (op.kind == DTRUN_GATHERV && root);
}

// Elements of a buffer; saturates.
std::uint64_t Extent(const dtrun_op& op, int size, bool times, const std::uint64_t* counts,
                     const std::uint64_t* offsets) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto ranks = static_cast<std::uint64_t>(size);
  if (counts == nullptr) {
    if (!times) return op.count;
    return op.count > kMost / ranks ? kMost : op.count * ranks;
  }
  std::uint64_t end = 0;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t start = offsets == nullptr ? end : offsets[rank];
    if (counts[rank] > kMost - start) return kMost;
    end = std::max(end, start + counts[rank]);
  }
  return end;
}

void CheckBuffer(const dtrun_op& op, const char* which, const void* memory, std::uint64_t elements) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  if (elements > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()) / width)
    Refuse(op, std::to_string(elements) + " elements do not fit the address space");
  if (elements == 0) return;
  if (memory == nullptr) Refuse(op, std::string("the ") + which + " buffer is null");
  if (reinterpret_cast<std::uintptr_t>(memory) % kernels::ElementAlignment(op.dtype) != 0)
    Refuse(op, std::string("the ") + which + " buffer is not aligned to its elements");
}

void CheckRanks(const dtrun_op& op, int rank, int size, const std::string& name) {
  const std::string world = "; '" + name + "' has " + std::to_string(size) + " ranks";
  const auto exists = [&](int other) { return other >= 0 && other < size; };
  if (HasRoot(op.kind) && !exists(op.root)) Refuse(op, "no rank " + std::to_string(op.root) + world);
  if (op.kind != DTRUN_SEND && op.kind != DTRUN_RECV) return;
  if (op.kind == DTRUN_RECV && op.peer == DTRUN_ANY_SOURCE) {
    if (size == 1) Refuse(op, "'" + name + "' has no other rank");
    return;
  }
  if (!exists(op.peer)) Refuse(op, "no rank " + std::to_string(op.peer) + world);
  if (op.peer == rank)
    Refuse(op, "rank " + std::to_string(op.peer) + " is this rank; copy the buffer instead");
}

void CheckBuffers(const dtrun_op& op, int rank, int size) {
  const bool root = op.root == rank;
  if (NeedsSendCounts(op, root) && op.send_counts == nullptr) Refuse(op, "send_counts is null");
  if (NeedsRecvCounts(op, root) && op.recv_counts == nullptr) Refuse(op, "recv_counts is null");
  const std::uint64_t* const send_counts = NeedsSendCounts(op, root) ? op.send_counts : nullptr;
  const std::uint64_t* const recv_counts = NeedsRecvCounts(op, root) ? op.recv_counts : nullptr;
  const auto own = static_cast<std::size_t>(rank);
  const auto check_send = [&](bool times) {
    CheckBuffer(op, "send", op.send, Extent(op, size, times, send_counts, op.send_offsets));
  };
  const auto check_recv = [&](bool times) {
    CheckBuffer(op, "recv", op.recv, Extent(op, size, times, recv_counts, op.recv_offsets));
  };
  switch (op.kind) {
    case DTRUN_BROADCAST:
    case DTRUN_RECV: check_recv(false); break;
    case DTRUN_SEND: check_send(false); break;
    case DTRUN_ALLGATHERV:
      CheckBuffer(op, "send", op.send, recv_counts[own]);
      check_recv(false);
      break;
    case DTRUN_REDUCE_SCATTERV:
      CheckBuffer(op, "send", op.send, Extent(op, size, false, recv_counts, op.recv_offsets));
      CheckBuffer(op, "recv", op.recv, recv_counts[own]);
      break;
    case DTRUN_REDUCE:
    case DTRUN_GATHER:
    case DTRUN_GATHERV:
      check_send(false);
      if (root) check_recv(op.kind == DTRUN_GATHER);
      break;
    case DTRUN_SCATTER:
    case DTRUN_SCATTERV:
      if (root) check_send(op.kind == DTRUN_SCATTER);
      check_recv(false);
      break;
    default:
      check_send(op.kind == DTRUN_REDUCE_SCATTER || op.kind == DTRUN_ALLTOALL);
      check_recv(op.kind == DTRUN_ALLGATHER || op.kind == DTRUN_ALLTOALL);
  }
}

Parts CopyParts(const std::uint64_t* counts, const std::uint64_t* offsets, int size) {
  Parts parts;
  parts.counts.assign(counts, counts + size);
  std::uint64_t next = 0;
  for (int rank = 0; rank < size; ++rank) {
    parts.offsets.push_back(offsets == nullptr ? next : offsets[rank]);
    next += counts[rank];
  }
  return parts;
}

// FNV-1a over whole numbers, folded.
class Digest {
 public:
  void Add(std::uint64_t value) { hash_ = (hash_ ^ (value ^ value >> 32)) * 0x100000001b3u; }
  std::uint32_t value() const { return static_cast<std::uint32_t>(hash_ ^ hash_ >> 32); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

std::uint64_t Parts::Total() const {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  return total;
}

bool Parts::Packed() const {
  std::uint64_t next = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] > 0 && offsets[rank] != next) return false;
    next += counts[rank];
  }
  return true;
}

std::uint64_t Parts::End() const {
  std::uint64_t end = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) end = std::max(end, offsets[rank] + counts[rank]);
  return end;
}

void CheckOperation(const dtrun_op& op, const dtrun_stream* stream, int rank, int size,
                    const std::string& name, int largest_tag) {
  if (op.kind <= 0 || op.kind >= DTRUN_OP_COUNT) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "operation " + std::to_string(op.kind) + " is unknown to this mpi plugin");
  }
  if (stream != nullptr && stream->device_kind != 0) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "mpi moves host memory only; copy to the host or choose another backend");
  }
  if (op.kind == DTRUN_BARRIER) return;
  CheckRanks(op, rank, size, name);
  if (kernels::ElementBytes(op.dtype) == 0) Refuse(op, "unknown element type " + std::to_string(op.dtype));
  if (Reduces(op.kind) && !kernels::Supports(op.dtype, op.reduce)) {
    if (op.reduce <= 0 || op.reduce >= DTRUN_REDUCE_COUNT)
      Refuse(op, "unknown reduction " + std::to_string(op.reduce));
    Refuse(op,
           std::string(DescribeCall(op.kind, op.dtype, op.reduce, -1, op.count)) +
               " has no meaning; dtrun/abi/types.h has the table of what has",
           DTRUN_UNSUPPORTED);
  }
  if ((op.kind == DTRUN_SEND || op.kind == DTRUN_RECV) && largest_tag < 0x7fffffff &&
      op.tag > static_cast<std::uint32_t>(largest_tag)) {
    Refuse(op,
           "tag " + std::to_string(op.tag) + " is beyond what this MPI can carry, " +
               std::to_string(largest_tag) + "; use smaller tags",
           DTRUN_UNSUPPORTED);
  }
  CheckBuffers(op, rank, size);
}

Call CopyCall(const dtrun_op& op, int size) {
  Call call;
  call.op = op;
  const bool one_sided = op.kind == DTRUN_SCATTERV || op.kind == DTRUN_GATHERV;
  const bool with_send = op.kind == DTRUN_ALLTOALLV || op.kind == DTRUN_SCATTERV;
  const bool with_recv = op.kind == DTRUN_ALLGATHERV || op.kind == DTRUN_REDUCE_SCATTERV ||
                         op.kind == DTRUN_ALLTOALLV || op.kind == DTRUN_GATHERV;
  if (with_send && !(one_sided && op.send_counts == nullptr))
    call.send = CopyParts(op.send_counts, op.send_offsets, size);
  if (with_recv && !(one_sided && op.recv_counts == nullptr))
    call.recv = CopyParts(op.recv_counts, op.recv_offsets, size);
  return call;
}

Agenda MakeAgenda(const Call& call, std::uint64_t number) {
  const dtrun_op& op = call.op;
  Agenda agenda{number, 0, op.kind, op.dtype, op.reduce, HasRoot(op.kind) ? op.root : -1, op.count};
  // Where ranks have counts of their own, `count` is not compared.
  const bool own_counts = op.kind == DTRUN_GATHERV || op.kind == DTRUN_SCATTERV ||
                          op.kind == DTRUN_ALLTOALLV || op.kind == DTRUN_ALLGATHERV ||
                          op.kind == DTRUN_REDUCE_SCATTERV || op.kind == DTRUN_BARRIER;
  if (own_counts) agenda.count = 0;
  if (!Reduces(op.kind)) agenda.reduce = 0;
  if (op.kind == DTRUN_BARRIER) agenda.dtype = 0;
  Digest digest;
  digest.Add(static_cast<std::uint64_t>(agenda.kind) << 32 | static_cast<std::uint32_t>(agenda.dtype) << 16 |
             static_cast<std::uint32_t>(agenda.reduce));
  digest.Add(static_cast<std::uint32_t>(agenda.root));
  digest.Add(agenda.count);
  if (op.kind == DTRUN_ALLGATHERV || op.kind == DTRUN_REDUCE_SCATTERV) {
    for (const std::uint64_t count : call.recv.counts) digest.Add(count);
  }
  agenda.digest = digest.value();
  return agenda;
}

}  // namespace dtrun::mpi_plugin
