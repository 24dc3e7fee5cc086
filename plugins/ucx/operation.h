// An operation between enqueue and its end.
//
// Shared by the request that core holds and the engine. What stands under "engine" belongs to
// the thread that drives the engine; the rest is constant, or locked by it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "dtrun/plugin/op.hpp"
#include "worker.h"

namespace dtrun::ucx_plugin {

struct Operation {
  // `given` is for a communicator of `ranks`.
  Operation(const dtrun_op& given, int ranks)
      : op(given, ranks), timeout(given.timeout_ns), deadline(timeout), text(sdk::OperationText(given)) {}

  bool collective() const { return sdk::IsCollective(op->kind); }
  // The thread that enqueued it will wait for it at once.
  bool blocking() const { return (op->flags & DTRUN_OP_BLOCKING) != 0; }

  const sdk::OwnedOp op;
  const sdk::Nanoseconds timeout;
  const sdk::Deadline deadline;
  const std::string text;  // "allreduce 7", "recv from rank 1 with tag 3"

  Transfer transfer;  // engine; of a message

  std::atomic<bool> done{false};
  std::optional<sdk::Failure> failure;  // constant once done
};

}  // namespace dtrun::ucx_plugin
