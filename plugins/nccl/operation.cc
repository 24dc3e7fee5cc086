#include "operation.h"

#include <limits>
#include <numeric>

#include "dtrun/plugin/names.hpp"

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

[[noreturn]] void Refuse(const dtrun_op& op, const std::string& why,
                         dtrun_status code = DTRUN_INVALID_ARGUMENT) {
  throw Failure(code, std::string(sdk::OperationName(op.kind)) + ": " + why);
}

bool HasRoot(std::int32_t kind) {
  constexpr std::uint64_t kRooted =
      sdk::Bits({DTRUN_BROADCAST, DTRUN_REDUCE, DTRUN_GATHER, DTRUN_SCATTER, DTRUN_GATHERV, DTRUN_SCATTERV});
  return (kRooted >> kind & 1) != 0;
}

void CheckPeer(const dtrun_op& op, const Site& site) {
  if (op.peer == DTRUN_ANY_SOURCE && op.kind == DTRUN_RECV) {
    Refuse(op, "nccl cannot receive from any rank; name the sender", DTRUN_UNSUPPORTED);
  }
  if (op.peer < 0 || op.peer >= site.size) {
    Refuse(op, "no rank " + std::to_string(op.peer) + "; '" + site.name + "' has " +
                   std::to_string(site.size) + " ranks");
  }
  if (op.peer == site.rank)
    Refuse(op, "rank " + std::to_string(op.peer) + " is this rank; copy the buffer instead");
  // Ignoring the tag would deliver the wrong message to whoever relies on it.
  if (op.tag != 0) {
    Refuse(op,
           "nccl's messages have no tags, so tag " + std::to_string(op.tag) +
               " would be lost; use tag 0 and receive in the order of the sends",
           DTRUN_UNSUPPORTED);
  }
}

// `bytes` per element; the whole must fit the address space.
std::uint64_t Total(const dtrun_op& op, std::uint64_t count, std::uint64_t times, std::uint64_t width) {
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max());
  if (count > most / width / times)
    Refuse(op, std::to_string(count) + " elements do not fit the address space");
  return count * times;
}

std::vector<Part> EqualParts(std::uint64_t count, int size) {
  std::vector<Part> parts(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = {i * count, count};
  return parts;
}

std::vector<Part> ReadParts(const dtrun_op& op, const char* which, const std::uint64_t* counts,
                            const std::uint64_t* offsets, const Site& site, std::uint64_t width) {
  if (counts == nullptr) Refuse(op, std::string("the ") + which + " counts are missing");
  std::vector<Part> parts(static_cast<std::size_t>(site.size));
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {offsets != nullptr ? offsets[i] : end, counts[i]};
    Total(op, parts[i].offset, 1, width);
    end = Total(op, parts[i].offset, 1, width) + Total(op, parts[i].count, 1, width);
    Total(op, end, 1, width);
  }
  return parts;
}

std::uint64_t Sum(const std::vector<Part>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Part& part) { return sum + part.count; });
}

// How many elements this rank sends and receives; fills the parts.
struct Traffic {
  std::uint64_t send;
  std::uint64_t recv;
};
Traffic ReadTraffic(const dtrun_op& op, const Site& site, Operation& out) {
  const auto size = static_cast<std::uint64_t>(site.size);
  const auto self = static_cast<std::size_t>(site.rank);
  const bool root = op.root == site.rank;
  const std::uint64_t one = Total(op, op.count, 1, out.width);
  const auto all = [&] { return Total(op, op.count, size, out.width); };
  const auto sent = [&] {
    out.send_parts = ReadParts(op, "send", op.send_counts, op.send_offsets, site, out.width);
    return Sum(out.send_parts);
  };
  const auto received = [&] {
    out.recv_parts = ReadParts(op, "recv", op.recv_counts, op.recv_offsets, site, out.width);
    return Sum(out.recv_parts);
  };
  switch (op.kind) {
    case DTRUN_ALLREDUCE: return {one, one};
    case DTRUN_BROADCAST: return {0, one};
    case DTRUN_SEND: return {one, 0};
    case DTRUN_RECV: return {0, one};
    case DTRUN_REDUCE: return {one, root ? one : 0};
    case DTRUN_ALLGATHER: return {one, all()};
    case DTRUN_REDUCE_SCATTER: return {all(), one};
    case DTRUN_ALLTOALL:
      all();
      out.send_parts = out.recv_parts = EqualParts(op.count, site.size);
      return {op.count * size, op.count * size};
    case DTRUN_GATHER:
      all();
      out.recv_parts = EqualParts(op.count, site.size);
      return {one, root ? op.count * size : 0};
    case DTRUN_SCATTER:
      all();
      out.send_parts = EqualParts(op.count, site.size);
      return {root ? op.count * size : 0, one};
    case DTRUN_ALLGATHERV: {
      const std::uint64_t recv = received();
      return {out.recv_parts[self].count, recv};
    }
    case DTRUN_REDUCE_SCATTERV: {
      const std::uint64_t send = received();
      return {send, out.recv_parts[self].count};
    }
    case DTRUN_ALLTOALLV: {
      const std::uint64_t send = sent();
      return {send, received()};
    }
    case DTRUN_GATHERV: return {one, root ? received() : 0};
    case DTRUN_SCATTERV: return {root ? sent() : 0, one};
    default: return {0, 0};
  }
}

}  // namespace

Operation ReadOperation(const dtrun_op& raw, const Site& site) {
  if (raw.kind <= 0 || raw.kind >= DTRUN_OP_COUNT) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "operation " + std::to_string(raw.kind) + " is unknown to this nccl plugin");
  }
  Operation out;
  out.op = raw;
  out.op.send_counts = out.op.send_offsets = out.op.recv_counts = out.op.recv_offsets = nullptr;
  out.text = sdk::OperationName(raw.kind);
  if (out.point_to_point()) {
    CheckPeer(raw, site);
    out.text += (raw.kind == DTRUN_SEND ? " to rank " : " from rank ") + std::to_string(raw.peer);
  } else {
    out.text += " " + std::to_string(raw.sequence);
  }
  if (HasRoot(raw.kind) && (raw.root < 0 || raw.root >= site.size)) {
    Refuse(raw, "no rank " + std::to_string(raw.root) + " to be the root; '" + site.name + "' has " +
                    std::to_string(site.size) + " ranks");
  }
  if (raw.kind == DTRUN_BARRIER) return out;
  out.width = ElementBytes(raw.dtype);
  if (out.width == 0) Refuse(raw, "unknown element type " + std::to_string(raw.dtype));
  out.wire = Reduces(raw.kind) ? ReduceAs(raw.dtype, raw.reduce) : MoveAs(raw.dtype);
  const Traffic traffic = ReadTraffic(raw, site, out);
  if (traffic.send > 0 && raw.send == nullptr) Refuse(raw, "the send buffer is null");
  if (traffic.recv > 0 && raw.recv == nullptr) Refuse(raw, "the recv buffer is null");
  return out;
}

}  // namespace dtrun::nccl_plugin
