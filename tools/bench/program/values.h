// The buffer contents before the correctness check, and the expected results.
//
// Element i of rank r is w * ((i + r) mod 3), where w is 2 on rank 0 and on odd ranks, else 1. These values
// are exact in every type. They differ between neighbouring elements and ranks, and so do sums over any
// number of ranks. With a period of 3, results can be compared at memory speed. Any thread.
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
  void* recv = nullptr;  // a broadcast uses only this buffer, also on the root
};

// Fills send, and fills recv with values that no result contains.
void Fill(const Call& call, int rank);

// After the call: the error names the first wrong element, its place and both values.
Status Check(const Call& call, int rank, int ranks);

}  // namespace dtrun::bench
