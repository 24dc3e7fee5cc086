#include "core/comm/operation.h"

#include <fmt/format.h>

#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {

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

}  // namespace dtrun::comm
