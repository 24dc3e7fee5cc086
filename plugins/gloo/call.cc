#include "call.h"

#include <initializer_list>
#include <limits>

#include "dtrun/plugin/names.hpp"
#include "operation.h"

namespace dtrun::gloo_plugin {
namespace {

using sdk::Failure;

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max();

bool Reduces(std::int32_t kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}
bool Rooted(std::int32_t kind) {
  return kind == DTRUN_BROADCAST || kind == DTRUN_REDUCE || kind == DTRUN_GATHER || kind == DTRUN_GATHERV ||
         kind == DTRUN_SCATTER || kind == DTRUN_SCATTERV;
}

[[noreturn]] void Refuse(const dtrun_op& op, const std::string& why) {
  throw Failure(DTRUN_INVALID_ARGUMENT, std::string(sdk::OperationName(op.kind)) + ": " + why);
}

// Mixes what ranks must agree on into a few bits; FNV-1a.
class Digest {
 public:
  Digest(std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values) Add(value);
  }
  void Add(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) hash_ = (hash_ ^ ((value >> shift) & 0xffu)) * 0x100000001b3u;
  }
  std::uint64_t Bits(int bits) const { return (hash_ ^ hash_ >> 32) & ((std::uint64_t{1} << bits) - 1); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

// The parts of one buffer of an operation, as its caller describes them.
struct Layout {
  const dtrun_op& op;
  std::size_t width;
  int size;

  // Part r is `each` elements at r * each.
  std::vector<Range> Even(std::uint64_t each) const {
    std::vector<Range> ranges(static_cast<std::size_t>(size));
    for (std::size_t r = 0; r < ranges.size(); ++r) ranges[r] = {r * each * width, each * width};
    return ranges;
  }
  // All `count` elements for every rank.
  std::vector<Range> Same(std::uint64_t count) const {
    return std::vector<Range>(static_cast<std::size_t>(size), Range{0, count * width});
  }
  // All `count` elements for rank `to` and none for the others.
  std::vector<Range> Only(int to, std::uint64_t count) const {
    std::vector<Range> ranges(static_cast<std::size_t>(size));
    ranges[static_cast<std::size_t>(to)].size = count * width;
    return ranges;
  }
  std::vector<Range> None() const { return std::vector<Range>(static_cast<std::size_t>(size)); }
  // As arrays say; throws when they are missing or reach too far.
  std::vector<Range> Parts(const char* name, const std::uint64_t* counts,
                           const std::uint64_t* offsets) const {
    if (counts == nullptr) Refuse(op, std::string(name) + "_counts is null");
    std::vector<Range> ranges(static_cast<std::size_t>(size));
    std::uint64_t next = 0;
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      const std::uint64_t begin = offsets != nullptr ? offsets[r] : next;
      const std::uint64_t most = kMostBytes / width;
      if (counts[r] > most || begin > most - counts[r]) {
        Refuse(op, "part " + std::to_string(r) + " of " + name + ", " + std::to_string(counts[r]) +
                       " elements at " + std::to_string(begin) + ", does not fit the address space");
      }
      ranges[r] = {begin * width, counts[r] * width};
      next = begin + counts[r];
    }
    return ranges;
  }
};

void LayOut(CollectiveCall& call, const dtrun_op& op, int rank, int size) {
  const Layout layout{op, call.width, size};
  const bool at_root = rank == op.root;
  switch (op.kind) {
    case DTRUN_ALLGATHER:
      call.sends = layout.Same(op.count);
      call.recvs = layout.Even(op.count);
      break;
    case DTRUN_ALLGATHERV:
      call.recvs = layout.Parts("recv", op.recv_counts, op.recv_offsets);
      call.sends = layout.Same(op.recv_counts[rank]);
      break;
    case DTRUN_GATHER:
      call.sends = layout.Only(op.root, op.count);
      call.recvs = at_root ? layout.Even(op.count) : layout.None();
      break;
    case DTRUN_GATHERV:
      call.sends = layout.Only(op.root, op.count);
      call.recvs = at_root ? layout.Parts("recv", op.recv_counts, op.recv_offsets) : layout.None();
      break;
    case DTRUN_SCATTER:
      call.sends = at_root ? layout.Even(op.count) : layout.None();
      call.recvs = layout.Only(op.root, op.count);
      break;
    case DTRUN_SCATTERV:
      call.sends = at_root ? layout.Parts("send", op.send_counts, op.send_offsets) : layout.None();
      call.recvs = layout.Only(op.root, op.count);
      break;
    case DTRUN_ALLTOALL: call.sends = call.recvs = layout.Even(op.count); break;
    case DTRUN_ALLTOALLV:
      call.sends = layout.Parts("send", op.send_counts, op.send_offsets);
      call.recvs = layout.Parts("recv", op.recv_counts, op.recv_offsets);
      break;
    case DTRUN_REDUCE_SCATTER: call.sends = layout.Even(op.count); break;
    case DTRUN_REDUCE_SCATTERV: call.sends = layout.Parts("recv", op.recv_counts, nullptr); break;
    default: break;
  }
}

bool AnyBytes(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    if (range.size > 0) return true;
  }
  return false;
}

// Whether this rank's part of the operation reads `send`, or writes `recv`.
struct Needs {
  bool send = false;
  bool recv = false;

  static Needs Of(const dtrun_op& op, const CollectiveCall& call, int rank) {
    switch (op.kind) {
      case DTRUN_BARRIER: return {};
      case DTRUN_SEND: return {op.count > 0, false};
      case DTRUN_BROADCAST:
      case DTRUN_RECV: return {false, op.count > 0};
      case DTRUN_ALLREDUCE: return {op.count > 0, op.count > 0};
      case DTRUN_REDUCE: return {op.count > 0, op.count > 0 && rank == op.root};
      case DTRUN_REDUCE_SCATTER:
      case DTRUN_REDUCE_SCATTERV:
        return {AnyBytes(call.sends), call.sends[static_cast<std::size_t>(rank)].size > 0};
      default: return {AnyBytes(call.sends), AnyBytes(call.recvs)};
    }
  }
};

}  // namespace

bool PointToPoint(std::int32_t kind) { return kind == DTRUN_SEND || kind == DTRUN_RECV; }

void Check(const dtrun_op& op, int rank, int size, const std::string& world) {
  if (op.kind <= 0 || op.kind >= DTRUN_OP_COUNT) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "operation " + std::to_string(op.kind) + " is unknown to this gloo plugin");
  }
  const auto in_world = [&](int other) { return other >= 0 && other < size; };
  const std::string ranks = "; '" + world + "' has " + std::to_string(size) + " ranks";
  if (Rooted(op.kind) && !in_world(op.root)) Refuse(op, "no rank " + std::to_string(op.root) + ranks);
  if (PointToPoint(op.kind) && !(op.kind == DTRUN_RECV && op.peer == DTRUN_ANY_SOURCE)) {
    if (!in_world(op.peer)) Refuse(op, "no rank " + std::to_string(op.peer) + ranks);
    if (op.peer == rank)
      Refuse(op, "rank " + std::to_string(op.peer) + " is this rank; copy the buffer instead");
  }
  if (op.kind == DTRUN_RECV && size == 1) Refuse(op, "there is no other rank in '" + world + "'");
  if (op.kind == DTRUN_BARRIER) return;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  if (width == 0) Refuse(op, "unknown element type " + std::to_string(op.dtype));
  if (Reduces(op.kind)) {
    if (op.reduce <= 0 || op.reduce >= DTRUN_REDUCE_COUNT)
      Refuse(op, "unknown reduction " + std::to_string(op.reduce));
    if (!kernels::Supports(op.dtype, op.reduce)) {
      throw Failure(DTRUN_UNSUPPORTED, std::string(sdk::OperationName(op.kind)) + ": reduction " +
                                           std::to_string(op.reduce) + " has no meaning for element type " +
                                           std::to_string(op.dtype) + "; the table is in dtrun/abi/types.h");
    }
  }
  if (op.count > kMostBytes / width / static_cast<std::uint64_t>(size)) {
    Refuse(op, std::to_string(op.count) + " elements do not fit the address space");
  }
  if (op.kind == DTRUN_REDUCE_SCATTERV && (op.recv_offsets != nullptr || op.send_offsets != nullptr)) {
    Refuse(op, "its parts lie one behind the other; give no offsets");
  }
  CollectiveCall call;
  call.width = width;
  LayOut(call, op, rank, size);
  const Needs needs = Needs::Of(op, call, rank);
  if (needs.send && op.send == nullptr) Refuse(op, "the send buffer is null");
  if (needs.recv && op.recv == nullptr) Refuse(op, "the recv buffer is null");
}

CollectiveCall MakeCall(const dtrun_op& op, int rank, int size) {
  CollectiveCall call;
  call.kind = op.kind;
  call.root = op.root;
  call.send = op.send;
  call.recv = op.recv;
  call.count = op.count;
  if (op.kind != DTRUN_BARRIER) call.width = kernels::ElementBytes(op.dtype);
  if (Reduces(op.kind)) {
    call.kernel = kernels::ReduceFor(op.dtype, op.reduce);
    if (op.reduce == DTRUN_PREMUL_SUM) {
      call.scale = op.scale;
      call.dtype = op.dtype;
    }
  }
  LayOut(call, op, rank, size);
  Digest digest{static_cast<std::uint32_t>(op.kind), static_cast<std::uint32_t>(op.dtype),
                static_cast<std::uint32_t>(op.reduce), static_cast<std::uint32_t>(op.root)};
  switch (op.kind) {
    case DTRUN_ALLTOALLV:  // counts differ between ranks
    case DTRUN_GATHERV:
    case DTRUN_SCATTERV: break;
    case DTRUN_ALLGATHERV:
    case DTRUN_REDUCE_SCATTERV:
      for (int r = 0; r < size; ++r) digest.Add(op.recv_counts[r]);
      break;
    default: digest.Add(op.count);
  }
  call.slot = MakeSlot(SlotUse::kCollective, (op.sequence & 0xffffffffu) << 28 | digest.Bits(24) << 4);
  return call;
}

std::uint64_t SlotOf(const CollectiveCall& call, std::size_t bytes) {
  return call.slot ^ Digest { bytes }.Bits(24) << 4;
}

// 32 bits of tag and 28 of digest. Messages of one slot match in the order they were sent; a sender does not
// know whether the receiver names it, so the slot cannot count them.
std::uint64_t MessageSlot(const dtrun_op& op) {
  const Digest digest{static_cast<std::uint32_t>(op.dtype), op.count};
  return MakeSlot(SlotUse::kPointToPoint, std::uint64_t{op.tag} << 28 | digest.Bits(28));
}

}  // namespace dtrun::gloo_plugin
