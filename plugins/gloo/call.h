// A dtrun_op as this plugin carries it out: checked, its parts laid out in bytes, its slot
// on the wire chosen. Values and pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin.hpp"

namespace dtrun::gloo_plugin {

// Bytes [begin, begin + size) of a buffer.
struct Range {
  std::size_t begin = 0;
  std::size_t size = 0;
};

// What one collective moves. Buffers may be in place as dtrun/abi/backend.h describes it.
struct CollectiveCall {
  std::int32_t kind = 0;
  int root = -1;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // elements of a vector that is reduced or broadcast
  std::size_t width = 1;  // bytes of an element
  // Unused by any other operation under way; the lowest four bits are free.
  std::uint64_t slot = 0;
  kernels::Reduce kernel = nullptr;
  double scale = 1;        // what this rank's elements are multiplied by first
  std::int32_t dtype = 0;  // of the elements that are scaled; 0: they are not
  // Per rank: what goes to it and what comes from it. Of a reduce-scatter only sends: the parts.
  std::vector<Range> sends;
  std::vector<Range> recvs;
};

bool PointToPoint(std::int32_t kind);

// Throws sdk::Failure with the reason why `op` cannot be done on rank `rank` of `size` ranks of `world`.
void Check(const dtrun_op& op, int rank, int size, const std::string& world);

// REQUIRES: `op` passed Check.
CollectiveCall MakeCall(const dtrun_op& op, int rank, int size);
std::uint64_t MessageSlot(const dtrun_op& op);

// The slot of an exchange of `bytes` within `call`: ranks that differ about the size never meet.
std::uint64_t SlotOf(const CollectiveCall& call, std::size_t bytes);

}  // namespace dtrun::gloo_plugin
