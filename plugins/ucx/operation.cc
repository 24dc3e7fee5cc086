#include "operation.h"

#include "dtrun/algorithms.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::ucx_plugin {
namespace {

std::string TextOf(const dtrun_op& op, std::uint64_t number) {
  std::string text = sdk::OperationName(op.kind);
  if (algorithms::IsCollective(op.kind))
    return text + " " + std::to_string(op.sequence != 0 ? op.sequence : number);
  text += op.kind == DTRUN_SEND ? " to " : " from ";
  text += op.peer == DTRUN_ANY_SOURCE ? std::string("any rank") : "rank " + std::to_string(op.peer);
  return text + " with tag " + std::to_string(op.tag);
}

}  // namespace

Operation::Operation(const dtrun_op& given, int size, std::uint64_t count, sdk::Nanoseconds limit)
    : op(given),
      text(TextOf(given, count)),
      number(count),
      collective(algorithms::IsCollective(given.kind)),
      blocking((given.flags & DTRUN_OP_BLOCKING) != 0),
      timeout(limit),
      deadline(limit) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::uint64_t** const members[] = {&op.send_counts, &op.send_offsets, &op.recv_counts,
                                           &op.recv_offsets};
  for (const std::uint64_t** member : members) {
    if (*member != nullptr) arrays.insert(arrays.end(), *member, *member + ranks);
  }
  const std::uint64_t* next = arrays.data();
  for (const std::uint64_t** member : members) {
    if (*member == nullptr) continue;
    *member = next;
    next += ranks;
  }
}

}  // namespace dtrun::ucx_plugin
