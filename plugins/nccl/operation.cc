#include "operation.h"

namespace dtrun::nccl_plugin {
namespace {

Wire WireOf(const dtrun_op& op) {
  return sdk::IsReduction(op.kind) ? ReduceAs(op.dtype, op.reduce) : MoveAs(op.dtype);
}

}  // namespace

Operation::Operation(const dtrun_op& given, int ranks, cuda::Stream on)
    : op(given, ranks),
      width(kernels::ElementBytes(given.dtype)),
      wire(WireOf(given)),
      stream(on),
      deadline(sdk::Nanoseconds(given.timeout_ns)),
      text(sdk::OperationText(given)) {
  // Ignoring the tag would deliver the wrong message to whoever relies on it.
  if (point_to_point() && given.tag != 0) {
    throw sdk::Failure(
        DTRUN_UNSUPPORTED,
        text +
            ": nccl's messages have no tags, so it would be lost; use tag 0 and receive in the "
            "order of the sends");
  }
}

}  // namespace dtrun::nccl_plugin
