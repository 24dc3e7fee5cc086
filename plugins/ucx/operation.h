// An operation between enqueue and its end.
//
// Shared by the request that core holds and the engine. What stands under "engine" belongs to
// the thread that drives the engine; the rest is constant, or locked by it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "device_memory.h"
#include "dtrun/plugin/cuda_scope.hpp"
#include "dtrun/plugin/op.hpp"
#include "worker.h"

namespace dtrun::ucx_plugin {

struct Operation {
  // `given` is for a communicator of `ranks`.
  Operation(const dtrun_op& given, int ranks, const DeviceMemory& devices)
      : op(given, ranks),
        timeout(given.timeout_ns),
        deadline(timeout),
        text(sdk::OperationText(given)),
        recv_memory(devices.TypeOf(op->recv)),
        send_memory(op->kind == DTRUN_BROADCAST ? recv_memory : devices.TypeOf(op->send)) {
    if (cuda(recv_memory) || cuda(send_memory))
      cuda_context = sdk::CudaScope::ContextOf(cuda(recv_memory) ? op->recv : op->send);
  }

  static bool cuda(ucs_memory_type_t type) {
    return type == UCS_MEMORY_TYPE_CUDA || type == UCS_MEMORY_TYPE_CUDA_MANAGED;
  }
  bool on_device() const {
    return recv_memory != UCS_MEMORY_TYPE_HOST || send_memory != UCS_MEMORY_TYPE_HOST;
  }

  bool collective() const { return sdk::IsCollective(op->kind); }
  // The thread that enqueued it will wait for it at once.
  bool blocking() const { return (op->flags & DTRUN_OP_BLOCKING) != 0; }

  const sdk::OwnedOp op;
  const sdk::Nanoseconds timeout;
  const sdk::Deadline deadline;
  const std::string text;  // "allreduce 7", "recv from rank 1 with tag 3"

  const ucs_memory_type_t recv_memory, send_memory;
  void* cuda_context = nullptr;  // of its buffers; null: none

  Transfer transfer;  // engine; of a message

  std::atomic<bool> done{false};
  std::optional<sdk::Failure> failure;  // constant once done
};

}  // namespace dtrun::ucx_plugin
