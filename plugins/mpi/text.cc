#include "text.h"

#include "dtrun/plugin/names.hpp"

namespace dtrun::mpi_plugin {
std::string DescribeCall(std::int32_t kind, std::int32_t dtype, std::int32_t reduce, std::int32_t root,
                         std::uint64_t count) {
  std::string text = sdk::OperationName(kind);
  if (kind == DTRUN_BARRIER) return text;
  text += " of " + std::to_string(count) + " " + sdk::TypeName(dtype);
  if (reduce != 0) text += std::string(" (") + sdk::ReductionName(reduce) + ")";
  if (root >= 0) text += " with root " + std::to_string(root);
  return text;
}

std::string OperationText(const dtrun_op& op) {
  if (op.kind != DTRUN_SEND && op.kind != DTRUN_RECV)
    return std::string(sdk::OperationName(op.kind)) + " " + std::to_string(op.sequence);
  const std::string peer = op.peer == DTRUN_ANY_SOURCE ? "any rank" : "rank " + std::to_string(op.peer);
  return std::string(sdk::OperationName(op.kind)) + (op.kind == DTRUN_SEND ? " to " : " from ") + peer +
         " with tag " + std::to_string(op.tag);
}

}  // namespace dtrun::mpi_plugin
