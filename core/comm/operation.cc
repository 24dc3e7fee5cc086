#include "core/comm/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/comm/extent.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

bool Has(std::uint64_t mask, std::int32_t bit) { return (mask >> bit & 1) != 0; }

// `why`: the backend's own text, if it gives one.
Error Unsupported(const dtrun_op& op, const Scope& scope, std::string_view why = {}) {
  std::string text =
      fmt::format("backend '{}' does not support {}", scope.backend, sdk::OperationName(op.kind));
  if (op.kind != DTRUN_BARRIER) text += fmt::format(" of {}", sdk::TypeName(op.dtype));
  if (sdk::FormOf(op.kind).reduces) text += fmt::format(" with {}", sdk::ReductionName(op.reduce));
  if (!why.empty()) text += fmt::format(": {}", why);
  return Error{DTRUN_UNSUPPORTED, text + "; choose another with backend.name"};
}

// What to use instead of a meaningless pair of type and reduction.
const char* Instead(std::int32_t dtype, std::int32_t reduce) {
  const bool complex = dtype == DTRUN_COMPLEX64 || dtype == DTRUN_COMPLEX128;
  switch (reduce) {
    case DTRUN_AVG:
      return dtype == DTRUN_BOOL ? "use land or lor" : "it has no exact result; use sum and divide";
    case DTRUN_PREMUL_SUM:
      return dtype == DTRUN_BOOL ? "use land or lor"
                                 : "it has no exact result; multiply the elements, then use sum";
    case DTRUN_MIN:
    case DTRUN_MAX: return "complex numbers have no order; reduce their magnitudes";
    case DTRUN_LAND:
    case DTRUN_LOR: return "compare the elements with zero, then reduce the answers as bool";
    default:
      return complex ? "bits of complex numbers mean nothing; use sum or prod"
                     : "bits of floating numbers mean nothing; use sum, min or max, or pass them as integers";
  }
}

// The error for a pair that kernels do not support.
Error NoReduction(const dtrun_op& op) {
  if (op.reduce < DTRUN_SUM || op.reduce >= sdk::kReductionEnd)
    return Invalid(op, fmt::format("unknown reduction {}", op.reduce));
  return Error{DTRUN_UNSUPPORTED,
               fmt::format("{}: {} of {}: {}", sdk::OperationName(op.kind), sdk::ReductionName(op.reduce),
                           sdk::TypeName(op.dtype), Instead(op.dtype, op.reduce))};
}

Status CheckRank(const dtrun_op& op, const Scope& scope, const char* what, std::int32_t rank) {
  if (rank >= 0 && rank < scope.size) return {};
  return Invalid(op, fmt::format("{} {} is outside '{}', which has ranks 0 to {}", what, rank, scope.comm,
                                 scope.size - 1));
}

Status CheckPeer(const dtrun_op& op, const Scope& scope) {
  if (op.kind == DTRUN_RECV && op.peer == DTRUN_ANY_SOURCE) {
    if (scope.size == 1) return Invalid(op, fmt::format("'{}' has no rank but this one", scope.comm));
    if (op.count == 0) return Invalid(op, "count is 0, and without elements no message is sent");
    if ((scope.caps.features & DTRUN_CAP_ANY_SOURCE) != 0) return {};
    return Error{DTRUN_UNSUPPORTED,
                 fmt::format("backend '{}' cannot receive from any rank; name the peer, or choose another "
                             "with backend.name",
                             scope.backend)};
  }
  if (Status peer = CheckRank(op, scope, "peer", op.peer); !peer) return peer;
  if (op.peer != scope.rank) return {};
  return Invalid(op, fmt::format("peer {} is this rank itself; copy the memory instead", op.peer));
}

// On the path of every call, so it uses no division and no Status.
bool IsSound(const void* buffer, std::uint64_t bytes, std::uint64_t alignment) {
  return bytes == 0 ||
         (buffer != nullptr && (reinterpret_cast<std::uintptr_t>(buffer) & (alignment - 1)) == 0);
}

Error Unsound(const dtrun_op& op, const char* what, const void* buffer, std::uint64_t bytes) {
  if (buffer == nullptr) {
    return Invalid(
        op, fmt::format("the {} buffer is null, and has {} elements", what, bytes / DtypeSize(op.dtype)));
  }
  return Invalid(op, fmt::format("the {} buffer at {} is not aligned to the {} bytes of {}", what, buffer,
                                 kernels::ElementAlignment(op.dtype), sdk::TypeName(op.dtype)));
}

// Asks the backend about what its masks leave open.
Status AskSupport(const dtrun_op& op, const Scope& scope, bool reduces) {
  dtrun_support_query query;
  DTRUN_INIT(query);
  query.kind = op.kind;
  query.dtype = op.dtype;
  query.reduce = reduces ? op.reduce : 0;
  query.device_kind = scope.device_kind;
  query.device_index = scope.device_index;
  if (scope.query_support(scope.instance, &query, nullptr) == DTRUN_OK) return {};
  PluginError error;  // its answer is the same each time (B16), and on the usual path no error is made
  const dtrun_status status = scope.query_support(scope.instance, &query, &error);
  if (status == DTRUN_OK) return {};
  Error why = Explained(status, error, "");
  if (status == DTRUN_UNSUPPORTED) return Unsupported(op, scope, error.message[0] == '\0' ? "" : why.text);
  why.text = fmt::format("backend '{}', in query_support: {}", scope.backend, why.text);
  return why;
}

}  // namespace

std::string Describe(const dtrun_op& op, std::string_view comm) {
  const sdk::Form& form = sdk::FormOf(op.kind);
  std::string text = sdk::OperationName(op.kind);
  if (sdk::IsCollective(op.kind)) text += fmt::format(" #{}", op.sequence);
  if (op.kind == DTRUN_SEND) text += fmt::format(" to rank {}", op.peer);
  if (op.kind == DTRUN_RECV) {
    text += op.peer == DTRUN_ANY_SOURCE ? " from any rank" : fmt::format(" from rank {}", op.peer);
  }
  text += fmt::format(" on '{}'", comm);
  if (op.kind == DTRUN_BARRIER) return text;
  text += fmt::format(" ({} x {}", sdk::TypeName(op.dtype), op.count);
  if (form.reduces) text += fmt::format(", {}", sdk::ReductionName(op.reduce));
  if (form.rooted) text += fmt::format(", root {}", op.root);
  if (!sdk::IsCollective(op.kind)) text += fmt::format(", tag {}", op.tag);
  return text + ")";
}

void ClearUnused(dtrun_op& op, const Scope& scope) {
  const sdk::Form& form = sdk::FormOf(op.kind);
  const auto used = [&](sdk::Shape shape, sdk::On on) {
    return shape != sdk::Shape::kNone && (on == sdk::On::kEveryRank || op.root == scope.rank);
  };
  if (op.kind == DTRUN_BARRIER) op.dtype = 0;
  if (op.kind == DTRUN_BARRIER) op.count = 0;
  if (!form.reduces) op.reduce = 0;
  if (!form.rooted) op.root = -1;
  if (sdk::IsCollective(op.kind)) op.peer = -1;
  if (sdk::IsCollective(op.kind)) op.tag = 0;
  if (op.reduce != DTRUN_PREMUL_SUM) op.scale = 0;
  if (op.kind != DTRUN_RECV || op.peer != DTRUN_ANY_SOURCE) op.source = nullptr;
  const bool sends = used(form.send, form.send_on), receives = used(form.recv, form.recv_on);
  if (!sends) op.send = nullptr;
  if (!receives) op.recv = nullptr;
  const bool send_parts = sends && form.send == sdk::Shape::kSendParts;
  const bool recv_parts =
      (receives && form.recv == sdk::Shape::kRecvParts) || (sends && form.send == sdk::Shape::kRecvParts);
  if (!send_parts) op.send_counts = op.send_offsets = nullptr;
  if (!recv_parts) op.recv_counts = op.recv_offsets = nullptr;
}

Status Check(const dtrun_op& op, const Scope& scope) {
  const dtrun_backend_caps& caps = scope.caps;
  if (op.kind == DTRUN_BARRIER) {
    if (!Has(caps.ops, op.kind)) return Unsupported(op, scope);
    return {};
  }
  if (!sdk::IsKnown(op.kind))
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("unknown operation {}; kind is DTRUN_ALLREDUCE (1) to DTRUN_SCATTERV (16)", op.kind)};
  if (DtypeSize(op.dtype) == 0)
    return Invalid(op,
                   fmt::format("unknown element type {}; dtype is DTRUN_FLOAT16 (1) to DTRUN_COMPLEX128 (15)",
                               op.dtype));
  const sdk::Form& form = sdk::FormOf(op.kind);
  if (form.reduces && !kernels::Supports(op.dtype, op.reduce)) return NoReduction(op);
  if (form.rooted) {
    if (Status root = CheckRank(op, scope, "root", op.root); !root) return root;
  }
  if (!sdk::IsCollective(op.kind)) {
    if (Status peer = CheckPeer(op, scope); !peer) return peer;
  }
  Extent extent;
  if (!MeasureCount(op, form, extent)) {
    if (Status measured = Measure(op, scope, extent); !measured) return measured;
  }
  const std::uint64_t alignment = kernels::ElementAlignment(op.dtype);
  if (!IsSound(op.send, extent.send, alignment)) return Unsound(op, "send", op.send, extent.send);
  if (!IsSound(op.recv, extent.recv, alignment)) return Unsound(op, "recv", op.recv, extent.recv);
  if (!MayCoexist(op, scope, extent)) {
    return Invalid(op, fmt::format("the send and recv buffers overlap; the only overlap allowed is {}",
                                   InPlaceText(op.kind)));
  }
  if (!Has(caps.ops, op.kind) || !Has(caps.dtypes, op.dtype) ||
      (form.reduces && (!Has(caps.reduces, op.reduce) || !Has(caps.reduce_dtypes, op.dtype)))) {
    return Unsupported(op, scope);
  }
  if (scope.query_support != nullptr) {
    if (Status supported = AskSupport(op, scope, form.reduces); !supported) return supported;
  }
  const std::uint64_t largest = std::max(extent.send, extent.recv);
  if (caps.max_bytes != 0 && largest > caps.max_bytes) {
    return Invalid(op, fmt::format("a buffer of {} bytes; backend '{}' carries at most {} at once: split it",
                                   largest, scope.backend, caps.max_bytes));
  }
  return {};
}

}  // namespace dtrun::comm
