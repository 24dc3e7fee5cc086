// What ranks put into their buffers before the correctness check, and what must come out.
//
// Element i of rank r is (i + r*r) mod 3: exact in every type, different between neighbours and
// ranks, and of period 3, so that a result is compared at the speed of memory. Any thread.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "tools/dtrun-bench/element.h"
#include "tools/dtrun-bench/operation.h"

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
