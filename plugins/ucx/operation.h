// An operation between enqueue and its end.
//
// Shared by the request that core holds and the engine. What stands under "engine" belongs to
// the thread that drives the engine; the rest is constant, or locked by it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker.h"

namespace dtrun::ucx_plugin {

struct Operation {
  // Copies counts and offsets of `given` for `size` ranks; `number` counts the collectives.
  Operation(const dtrun_op& given, int size, std::uint64_t number, sdk::Nanoseconds limit);

  dtrun_op op;
  const std::string text;  // "allreduce 7", "recv from rank 1 with tag 3"
  const std::uint64_t number;
  const bool collective;
  const bool blocking;  // the thread that enqueued it will wait for it at once
  const sdk::Nanoseconds timeout;
  const sdk::Deadline deadline;
  std::vector<std::uint64_t> arrays;

  Transfer transfer;  // engine; of a message

  std::atomic<bool> done{false};
  std::optional<sdk::Failure> failure;  // constant once done
};

}  // namespace dtrun::ucx_plugin
