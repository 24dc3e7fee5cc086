// A collective and its slot on the wire. Values and pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"
#include "operation.h"

namespace dtrun::gloo_plugin {

struct CollectiveCall {
  // `given` is for a communicator of `ranks`.
  CollectiveCall(const dtrun_op& given, int ranks);

  const sdk::OwnedOp op;
  const std::size_t width;  // bytes of an element
  // Unused by any other operation under way; the lowest four bits are free.
  const std::uint64_t slot;

  // The slot of an exchange of `bytes` within it: ranks that differ about the size never meet.
  std::uint64_t SlotOf(std::size_t bytes) const;
};

std::uint64_t MessageSlot(const dtrun_op& op);

}  // namespace dtrun::gloo_plugin
