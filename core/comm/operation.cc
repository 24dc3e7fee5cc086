#include "core/comm/operation.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrun::comm {
namespace {

bool Has(std::uint64_t mask, std::int32_t bit) { return (mask >> bit & 1) != 0; }

bool Reduces(std::int32_t kind) { return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE_SCATTER; }

// Bytes that an operation reads and writes; 0 where it has no such buffer.
struct Extent {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};

// False when a buffer would not fit into memory.
bool Measure(const dtrun_op& op, int size, Extent& out) {
  std::uint64_t part = 0, all = 0;
  if (__builtin_mul_overflow(op.count, DtypeSize(op.dtype), &part)) return false;
  if (__builtin_mul_overflow(part, static_cast<std::uint64_t>(size), &all)) return false;
  switch (op.kind) {
    case DTRUN_ALLREDUCE: out = {part, part}; break;
    case DTRUN_BROADCAST: out = {0, part}; break;
    case DTRUN_ALLGATHER: out = {part, all}; break;
    case DTRUN_REDUCE_SCATTER: out = {all, part}; break;
    case DTRUN_SEND: out = {part, 0}; break;
    default: out = {0, part}; break;
  }
  return std::max(out.send, out.recv) <= static_cast<std::uint64_t>(PTRDIFF_MAX);
}

std::uintptr_t Place(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool Disjoint(const dtrun_op& op, const Extent& bytes) {
  return Place(op.send) + bytes.send <= Place(op.recv) || Place(op.recv) + bytes.recv <= Place(op.send);
}

bool InPlace(const dtrun_op& op, const Extent& bytes, int rank) {
  const auto r = static_cast<std::uint64_t>(rank);
  switch (op.kind) {
    case DTRUN_ALLREDUCE: return op.send == op.recv;
    case DTRUN_ALLGATHER: return Place(op.send) == Place(op.recv) + r * bytes.send;
    case DTRUN_REDUCE_SCATTER: return Place(op.recv) == Place(op.send) + r * bytes.recv;
    default: return false;
  }
}

const char* InPlaceForm(std::int32_t kind) {
  switch (kind) {
    case DTRUN_ALLREDUCE: return "send == recv";
    case DTRUN_ALLGATHER: return "send == recv + rank * count";
    default: return "recv == send + rank * count";
  }
}

Error Invalid(const dtrun_op& op, std::string text) {
  return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{}: {}", KindText(op.kind), text)};
}

Error Unsupported(const dtrun_op& op, const Scope& scope) {
  std::string text = fmt::format("backend '{}' does not support {}", scope.backend, KindText(op.kind));
  if (op.kind != DTRUN_BARRIER) text += fmt::format(" of {}", DtypeText(op.dtype));
  if (Reduces(op.kind)) text += fmt::format(" with {}", ReduceText(op.reduce));
  return Error{DTRUN_UNSUPPORTED, text + "; choose another with backend.name"};
}

Status CheckRank(const dtrun_op& op, const Scope& scope, const char* what, std::int32_t rank) {
  if (rank >= 0 && rank < scope.size) return {};
  return Invalid(op, fmt::format("{} {} is outside '{}', whose ranks are 0 to {}", what, rank, scope.comm,
                                 scope.size - 1));
}

Status CheckBuffer(const dtrun_op& op, const char* what, const void* buffer, std::uint64_t bytes) {
  if (bytes == 0) return {};
  if (buffer == nullptr)
    return Invalid(op, fmt::format("the {} buffer is null, count is {}", what, op.count));
  if (Place(buffer) % DtypeSize(op.dtype) == 0) return {};
  return Invalid(op, fmt::format("the {} buffer at {} is not aligned to the {} bytes of {}", what, buffer,
                                 DtypeSize(op.dtype), DtypeText(op.dtype)));
}

Status CheckArguments(const dtrun_op& op, const Scope& scope, const Extent& bytes) {
  if (op.kind == DTRUN_BROADCAST) {
    if (Status root = CheckRank(op, scope, "root", op.root); !root) return root;
  }
  if (!IsCollective(op.kind)) {
    if (Status peer = CheckRank(op, scope, "peer", op.peer); !peer) return peer;
    if (op.peer == scope.rank) return Invalid(op, fmt::format("peer {} is this rank itself", op.peer));
  }
  if (Status send = CheckBuffer(op, "send", op.send, bytes.send); !send) return send;
  if (Status recv = CheckBuffer(op, "recv", op.recv, bytes.recv); !recv) return recv;
  if (bytes.send == 0 || bytes.recv == 0) return {};
  if (Disjoint(op, bytes) || InPlace(op, bytes, scope.rank)) return {};
  return Invalid(op, fmt::format("the send and recv buffers overlap; the only overlap allowed is {}",
                                 InPlaceForm(op.kind)));
}

}  // namespace

const char* KindText(std::int32_t kind) {
  switch (kind) {
    case DTRUN_ALLREDUCE: return "allreduce";
    case DTRUN_BROADCAST: return "broadcast";
    case DTRUN_ALLGATHER: return "allgather";
    case DTRUN_REDUCE_SCATTER: return "reduce_scatter";
    case DTRUN_BARRIER: return "barrier";
    case DTRUN_SEND: return "send";
    case DTRUN_RECV: return "recv";
    default: return "unknown operation";
  }
}

const char* DtypeText(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT16: return "float16";
    case DTRUN_BFLOAT16: return "bfloat16";
    case DTRUN_FLOAT32: return "float32";
    case DTRUN_FLOAT64: return "float64";
    case DTRUN_INT32: return "int32";
    case DTRUN_INT64: return "int64";
    case DTRUN_UINT8: return "uint8";
    default: return "unknown type";
  }
}

const char* ReduceText(std::int32_t reduce) {
  switch (reduce) {
    case DTRUN_SUM: return "sum";
    case DTRUN_PROD: return "prod";
    case DTRUN_MIN: return "min";
    case DTRUN_MAX: return "max";
    case DTRUN_AVG: return "avg";
    default: return "unknown reduction";
  }
}

std::string Describe(const dtrun_op& op, std::string_view comm) {
  std::string text = KindText(op.kind);
  if (IsCollective(op.kind)) text += fmt::format(" #{}", op.sequence);
  if (op.kind == DTRUN_SEND) text += fmt::format(" to rank {}", op.peer);
  if (op.kind == DTRUN_RECV) text += fmt::format(" from rank {}", op.peer);
  text += fmt::format(" on '{}'", comm);
  if (op.kind == DTRUN_BARRIER) return text;
  text += fmt::format(" ({} x {}", DtypeText(op.dtype), op.count);
  if (Reduces(op.kind)) text += fmt::format(", {}", ReduceText(op.reduce));
  if (op.kind == DTRUN_BROADCAST) text += fmt::format(", root {}", op.root);
  if (!IsCollective(op.kind)) text += fmt::format(", tag {}", op.tag);
  return text + ")";
}

Status Check(const dtrun_op& op, const Scope& scope) {
  const dtrun_backend_caps& caps = scope.caps;
  if (op.kind == DTRUN_BARRIER) {
    if (!Has(caps.ops, op.kind)) return Unsupported(op, scope);
    return {};
  }
  if (DtypeSize(op.dtype) == 0) return Invalid(op, fmt::format("unknown element type {}", op.dtype));
  if (Reduces(op.kind)) {
    if (op.reduce < DTRUN_SUM || op.reduce >= DTRUN_REDUCE_COUNT) {
      return Invalid(op, fmt::format("unknown reduction {}", op.reduce));
    }
    const bool floating = op.dtype <= DTRUN_FLOAT64;
    if (op.reduce == DTRUN_AVG && !floating) {
      return Error{DTRUN_UNSUPPORTED, fmt::format("{}: avg of {} has no exact meaning; use sum and divide",
                                                  KindText(op.kind), DtypeText(op.dtype))};
    }
  }
  Extent bytes;
  if (!Measure(op, scope.size, bytes)) {
    return Invalid(op, fmt::format("{} elements of {} for {} ranks do not fit into memory", op.count,
                                   DtypeText(op.dtype), scope.size));
  }
  if (Status arguments = CheckArguments(op, scope, bytes); !arguments) return arguments;
  if (!Has(caps.ops, op.kind) || !Has(caps.dtypes, op.dtype) ||
      (Reduces(op.kind) && !Has(caps.reduces, op.reduce))) {
    return Unsupported(op, scope);
  }
  const std::uint64_t largest = std::max(bytes.send, bytes.recv);
  if (caps.max_bytes != 0 && largest > caps.max_bytes) {
    return Invalid(op, fmt::format("a buffer of {} bytes; backend '{}' carries at most {} at once: split it",
                                   largest, scope.backend, caps.max_bytes));
  }
  return {};
}

}  // namespace dtrun::comm
