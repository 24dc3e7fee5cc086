// One operation under way, as messages and timeouts need to know it. Made by the thread
// that enqueues it, read by the one that carries it out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::gloo_plugin {

struct Operation {
  Operation(std::string name, sdk::Nanoseconds limit) : text(std::move(name)), timeout(limit) {}
  explicit Operation(const dtrun_op& op)
      : Operation(sdk::OperationText(op), sdk::Nanoseconds(op.timeout_ns)) {}

  const std::string text;  // "allreduce 7", "recv from rank 1 with tag 3"
  const sdk::Nanoseconds timeout;
  static constexpr int kAnyone = -2;
  std::atomic<int> waiting_for{-1};  // the rank whose bytes are awaited right now, or kAnyone
};

// Gloo matches messages between two ranks by a 64-bit slot. The upper four bits tell the
// uses apart. The lower bits hold a digest of the operation, so that messages of ranks that
// disagree on it never match: Gloo would end the process when a message is longer than its
// buffer, and would silently combine different types.
enum class SlotUse : std::uint64_t { kAlarm = 1, kGoodbye, kProbe, kCollective, kPointToPoint };

inline std::uint64_t MakeSlot(SlotUse use, std::uint64_t low = 0) {
  return (static_cast<std::uint64_t>(use) << 60) | (low & ((std::uint64_t{1} << 60) - 1));
}

}  // namespace dtrun::gloo_plugin
