#include "core/comm/extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

// The parts of a buffer, one per rank.
struct Parts {
  const char* counts_name;
  const char* offsets_name;
  const std::uint64_t* counts;
  const std::uint64_t* offsets;  // null: contiguous
  int size;
};

Parts SendParts(const dtrun_op& op, const Scope& scope) {
  return {"send_counts", "send_offsets", op.send_counts, op.send_offsets, scope.size};
}

Parts RecvParts(const dtrun_op& op, const Scope& scope) {
  return {"recv_counts", "recv_offsets", op.recv_counts, op.recv_offsets, scope.size};
}

// Calls `body(rank, offset, count)` in rank order until it returns false. Also returns false if a part's
// offset overflows.
template <class Body>
bool Walk(const Parts& parts, Body&& body) {
  std::uint64_t behind = 0;
  for (int r = 0; r < parts.size; ++r) {
    const std::uint64_t offset = parts.offsets == nullptr ? behind : parts.offsets[r];
    if (__builtin_add_overflow(offset, parts.counts[r], &behind)) return false;
    if (!body(r, offset, parts.counts[r])) return false;
  }
  return true;
}

// The usual reason is a negative count that became unsigned.
Error TooLarge(const dtrun_op& op, const Scope& scope, std::uint64_t count) {
  std::string shown = fmt::format("{}", count);
  if (count > INT64_MAX) shown += fmt::format(" ({} as a signed number)", static_cast<std::int64_t>(count));
  return Invalid(op, fmt::format("{} elements of {} for {} ranks do not fit into memory", shown,
                                 sdk::TypeName(op.dtype), scope.size));
}

Status CheckReceivedApart(const dtrun_op& op, const Parts& parts) {
  if (parts.offsets == nullptr) return {};
  std::uint64_t behind = 0;
  const bool rising = Walk(parts, [&](int, std::uint64_t offset, std::uint64_t count) {
    if (count == 0) return true;
    if (offset < behind) return false;
    behind = offset + count;
    return true;
  });
  if (rising) return {};
  std::vector<int> order(static_cast<std::size_t>(parts.size));
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int r) { return parts.counts[r] == 0; });
  std::sort(order.begin(), order.end(), [&](int a, int b) { return parts.offsets[a] < parts.offsets[b]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const int a = order[i - 1], b = order[i];
    if (parts.offsets[a] + parts.counts[a] <= parts.offsets[b]) continue;
    return Invalid(op,
                   fmt::format("the parts of ranks {} and {} overlap in recv: {} elements at {}, and {} "
                               "at {}",
                               a, b, parts.counts[a], parts.offsets[a], parts.counts[b], parts.offsets[b]));
  }
  return {};
}

// Elements from the start of the buffer to the end of its last part.
Status Span(const dtrun_op& op, const Scope& scope, const Parts& parts, bool received, std::uint64_t& out) {
  if (parts.counts == nullptr) {
    return Invalid(op, fmt::format("{} is null; it has a count for each of the {} ranks of '{}'",
                                   parts.counts_name, parts.size, scope.comm));
  }
  std::uint64_t total = 0, worst = 0;
  const bool sound = Walk(parts, [&](int, std::uint64_t offset, std::uint64_t count) {
    worst = count;
    if (count > 0) out = std::max(out, offset + count);
    return !__builtin_add_overflow(total, count, &total);
  });
  if (!sound) {
    const auto fits = [&](std::uint64_t count) { return count <= PTRDIFF_MAX / DtypeSize(op.dtype); };
    const std::uint64_t* end = parts.counts + parts.size;
    const std::uint64_t* absurd = std::find_if_not(parts.counts, end, fits);
    if (absurd == end && parts.offsets != nullptr) {
      const std::uint64_t* most = std::max_element(parts.offsets, parts.offsets + parts.size);
      return Invalid(op, fmt::format("{}[{}] is {}, behind which {} elements of {} do not fit into memory",
                                     parts.offsets_name, most - parts.offsets, *most,
                                     parts.counts[most - parts.offsets], sdk::TypeName(op.dtype)));
    }
    return TooLarge(op, scope, absurd == end ? worst : *absurd);
  }
  return received ? CheckReceivedApart(op, parts) : Status();
}

// Elements of one buffer on this rank.
Status Count(const dtrun_op& op, const Scope& scope, sdk::Shape shape, bool received, std::uint64_t& out) {
  switch (shape) {
    case sdk::Shape::kNone: out = 0; return {};
    case sdk::Shape::kCount: out = op.count; return {};
    case sdk::Shape::kCountEach:
      if (__builtin_mul_overflow(op.count, static_cast<std::uint64_t>(scope.size), &out)) {
        return TooLarge(op, scope, op.count);
      }
      return {};
    case sdk::Shape::kMine:
      // Its array is checked where the buffer of all parts is measured.
      out = op.recv_counts == nullptr ? 0 : op.recv_counts[scope.rank];
      return {};
    case sdk::Shape::kSendParts: return Span(op, scope, SendParts(op, scope), received, out);
    case sdk::Shape::kRecvParts: return Span(op, scope, RecvParts(op, scope), received, out);
  }
  return {};
}

// Of the kinds that specify a rank's own part twice.
Status CheckOwnPart(const dtrun_op& op, const Scope& scope) {
  const auto compare = [&](std::uint64_t sent, std::uint64_t received) -> Status {
    if (sent == received) return {};
    return Invalid(
        op, fmt::format("rank {} sends {} elements to itself and receives {}", scope.rank, sent, received));
  };
  if (op.kind == DTRUN_ALLTOALLV) return compare(op.send_counts[scope.rank], op.recv_counts[scope.rank]);
  if (op.root != scope.rank) return {};
  if (op.kind == DTRUN_GATHERV) return compare(op.count, op.recv_counts[scope.rank]);
  if (op.kind == DTRUN_SCATTERV) return compare(op.send_counts[scope.rank], op.count);
  return {};
}

// The elements before this rank's own part, in the buffer with a part for every rank.
std::uint64_t OwnPart(const dtrun_op& op, const Scope& scope) {
  const sdk::Form& form = sdk::FormOf(op.kind);
  const sdk::Shape shape = form.in_place == sdk::InPlace::kSendInRecv ? form.recv : form.send;
  if (shape == sdk::Shape::kCountEach) return op.count * static_cast<std::uint64_t>(scope.rank);
  const Parts parts = shape == sdk::Shape::kSendParts ? SendParts(op, scope) : RecvParts(op, scope);
  std::uint64_t place = 0;
  (void)Walk(parts, [&](int r, std::uint64_t offset, std::uint64_t) {
    place = offset;
    return r < scope.rank;
  });
  return place;
}

// The same parts at the same places on both sides.
bool SameParts(const dtrun_op& op, const Scope& scope) {
  std::uint64_t behind = 0;
  const Parts send = SendParts(op, scope);
  return Walk(RecvParts(op, scope), [&](int r, std::uint64_t offset, std::uint64_t count) {
    const std::uint64_t other = send.offsets == nullptr ? behind : send.offsets[r];
    behind = other + send.counts[r];
    return send.counts[r] == count && (other == offset || count == 0);
  });
}

std::uintptr_t Place(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Error Invalid(const dtrun_op& op, std::string_view text) {
  return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{}: {}", sdk::OperationName(op.kind), text)};
}

Status Measure(const dtrun_op& op, const Scope& scope, Extent& out) {
  const sdk::Form& form = sdk::FormOf(op.kind);
  if (op.kind == DTRUN_REDUCE_SCATTERV && (op.recv_offsets != nullptr || op.send_offsets != nullptr)) {
    return Invalid(op, "it takes no offsets; its parts lie one behind the other");
  }
  const bool root = op.root == scope.rank;
  const auto measure = [&](sdk::Shape shape, sdk::On on, bool received, std::uint64_t& elements) -> Status {
    if (on == sdk::On::kRoot && !root) return {};
    return Count(op, scope, shape, received, elements);
  };
  std::uint64_t send = 0, recv = 0;
  if (form.send == sdk::Shape::kCount) {
    send = op.count;  // the common case: no Status
  } else if (Status status = measure(form.send, form.send_on, false, send); !status) {
    return status;
  }
  if (form.recv == sdk::Shape::kCount && form.recv_on == sdk::On::kEveryRank) {
    recv = op.count;
  } else if (Status status = measure(form.recv, form.recv_on, true, recv); !status) {
    return status;
  }
  const std::uint64_t size = DtypeSize(op.dtype);
  std::uint64_t largest = 0;
  if (__builtin_mul_overflow(std::max(send, recv), size, &largest) ||
      largest > static_cast<std::uint64_t>(PTRDIFF_MAX)) {
    return TooLarge(op, scope, op.count > 0 ? op.count : std::max(send, recv));
  }
  if (Status own = CheckOwnPart(op, scope); !own) return own;
  out.send = send * size;
  out.recv = recv * size;
  const bool parted =
      form.in_place == sdk::InPlace::kSendInRecv || form.in_place == sdk::InPlace::kRecvInSend;
  if (parted && send > 0 && recv > 0) out.own_part = OwnPart(op, scope) * size;
  return {};
}

bool MayCoexist(const dtrun_op& op, const Scope& scope, const Extent& extent) {
  if (extent.send == 0 || extent.recv == 0) return true;
  const std::uintptr_t send = Place(op.send), recv = Place(op.recv);
  if (send + extent.send <= recv || recv + extent.recv <= send) return true;
  switch (sdk::FormOf(op.kind).in_place) {
    case sdk::InPlace::kNever: return false;
    case sdk::InPlace::kSame: return send == recv && (op.kind != DTRUN_ALLTOALLV || SameParts(op, scope));
    case sdk::InPlace::kSendInRecv: return send == recv + extent.own_part;
    case sdk::InPlace::kRecvInSend: return recv == send + extent.own_part;
  }
  return false;
}

const char* InPlaceText(std::int32_t kind) {
  switch (sdk::FormOf(kind).in_place) {
    case sdk::InPlace::kSame:
      return kind == DTRUN_ALLTOALLV ? "send == recv with equal counts and offsets" : "send == recv";
    case sdk::InPlace::kSendInRecv:
      return sdk::FormOf(kind).recv == sdk::Shape::kCountEach ? "send == recv + rank * count"
                                                              : "send at this rank's part of recv";
    case sdk::InPlace::kRecvInSend:
      return sdk::FormOf(kind).send == sdk::Shape::kCountEach ? "recv == send + rank * count"
                                                              : "recv at this rank's part of send";
    default: return "none";
  }
}

std::uint64_t Elements(const dtrun_op& op, const Scope& scope) {
  const std::uint64_t* counts = nullptr;
  if (op.kind == DTRUN_ALLGATHERV || op.kind == DTRUN_REDUCE_SCATTERV) counts = op.recv_counts;
  if (op.kind == DTRUN_ALLTOALLV) counts = op.send_counts;
  return counts == nullptr ? op.count : std::accumulate(counts, counts + scope.size, std::uint64_t{0});
}

bool Moves(const dtrun_op& op, const Scope& scope) {
  switch (op.kind) {
    case DTRUN_BARRIER:
    // One rank cannot know whether the others have elements.
    case DTRUN_ALLTOALLV:
    case DTRUN_GATHERV:
    case DTRUN_SCATTERV: return true;
    default: return Elements(op, scope) > 0;
  }
}

}  // namespace dtrun::comm
