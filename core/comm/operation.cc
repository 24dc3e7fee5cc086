#include "core/comm/operation.h"

#include <fmt/format.h>

namespace dtrun::comm {

const char* KindText(std::int32_t kind) { return FormOf(kind).name; }

const char* DtypeText(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT16: return "float16";
    case DTRUN_BFLOAT16: return "bfloat16";
    case DTRUN_FLOAT32: return "float32";
    case DTRUN_FLOAT64: return "float64";
    case DTRUN_INT8: return "int8";
    case DTRUN_INT16: return "int16";
    case DTRUN_INT32: return "int32";
    case DTRUN_INT64: return "int64";
    case DTRUN_UINT8: return "uint8";
    case DTRUN_UINT16: return "uint16";
    case DTRUN_UINT32: return "uint32";
    case DTRUN_UINT64: return "uint64";
    case DTRUN_BOOL: return "bool";
    case DTRUN_COMPLEX64: return "complex64";
    case DTRUN_COMPLEX128: return "complex128";
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
    case DTRUN_PREMUL_SUM: return "premul_sum";
    case DTRUN_BAND: return "band";
    case DTRUN_BOR: return "bor";
    case DTRUN_BXOR: return "bxor";
    case DTRUN_LAND: return "land";
    case DTRUN_LOR: return "lor";
    default: return "unknown reduction";
  }
}

std::string Describe(const dtrun_op& op, std::string_view comm) {
  const Form& form = FormOf(op.kind);
  std::string text = form.name;
  if (IsCollective(op.kind)) text += fmt::format(" #{}", op.sequence);
  if (op.kind == DTRUN_SEND) text += fmt::format(" to rank {}", op.peer);
  if (op.kind == DTRUN_RECV) {
    text += op.peer == DTRUN_ANY_SOURCE ? " from any rank" : fmt::format(" from rank {}", op.peer);
  }
  text += fmt::format(" on '{}'", comm);
  if (op.kind == DTRUN_BARRIER) return text;
  text += fmt::format(" ({} x {}", DtypeText(op.dtype), op.count);
  if (form.reduces) text += fmt::format(", {}", ReduceText(op.reduce));
  if (form.rooted) text += fmt::format(", root {}", op.root);
  if (!IsCollective(op.kind)) text += fmt::format(", tag {}", op.tag);
  return text + ")";
}

void ClearUnused(dtrun_op& op, const Scope& scope) {
  const Form& form = FormOf(op.kind);
  const auto used = [&](Shape shape, On on) {
    return shape != Shape::kNone && (on == On::kEveryRank || op.root == scope.rank);
  };
  if (op.kind == DTRUN_BARRIER) op.dtype = 0;
  if (op.kind == DTRUN_BARRIER) op.count = 0;
  if (!form.reduces) op.reduce = 0;
  if (!form.rooted) op.root = -1;
  if (IsCollective(op.kind)) op.peer = -1;
  if (IsCollective(op.kind)) op.tag = 0;
  if (op.reduce != DTRUN_PREMUL_SUM) op.scale = 0;
  if (op.kind != DTRUN_RECV || op.peer != DTRUN_ANY_SOURCE) op.source = nullptr;
  const bool sends = used(form.send, form.send_on), receives = used(form.recv, form.recv_on);
  if (!sends) op.send = nullptr;
  if (!receives) op.recv = nullptr;
  const bool send_parts = sends && form.send == Shape::kSendParts;
  const bool recv_parts =
      (receives && form.recv == Shape::kRecvParts) || (sends && form.send == Shape::kRecvParts);
  if (!send_parts) op.send_counts = op.send_offsets = nullptr;
  if (!recv_parts) op.recv_counts = op.recv_offsets = nullptr;
}

}  // namespace dtrun::comm
