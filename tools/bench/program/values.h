// What ranks put into their buffers before the correctness check, and what must come out.
//
// Element i of rank r is w * ((i + r) mod 3), where w is 2 on rank 0 and on odd ranks, else 1. That is
// exact in every type; it differs between elements and ranks that are neighbours, and so do the
// sums of any number of ranks; and its period of 3 lets a result be compared at the speed of memory.
// Any thread.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "tools/bench/program/element.h"
#include "tools/bench/program/operation.h"

namespace dtrun::bench {

inline constexpr int kRoot = 0;

// One call on one rank.
struct Call {
  Operation operation = Operation::kAllreduce;
  Element element{};
  Shape shape;
  void* send = nullptr;
  void* recv = nullptr;  // a broadcast uses this one alone, on the root as well
};

// Fills send, and recv with what no result holds.
void Fill(const Call& call, int rank);

// After the call: the first element that is wrong, with its place and both values.
Status Check(const Call& call, int rank, int ranks);

}  // namespace dtrun::bench
