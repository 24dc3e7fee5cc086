// Large reductions: rank r combines part r of all ranks, always in the order 0, 1, 2 ...
//
// Part r is cut into segments. While one segment is combined the next is on its way; an allreduce sends a combined
// segment back at once, a reduce to the root. Every receive has its memory before the data comes, which Gloo's
// messages want: 2 to 16 MiB took dtrun::algorithms 1.1 to 1.7 times as long (docs/benchmarks-history.md). A value;
// blocks the thread that runs the collective, and throws sdk::Failure when the mesh fails.
#pragma once

#include <cstdint>

#include "mesh.h"

namespace dtrun::gloo_plugin {

struct Reduction {
  const dtrun_op& op;
  std::uint64_t slot;  // and the next one: of no other operation under way
  std::size_t width;   // bytes of an element

  // Whether `op` is one.
  static bool Serves(const dtrun_op& op, int ranks);
  void Run(Mesh& mesh, Operation& operation) const;
};

}  // namespace dtrun::gloo_plugin
