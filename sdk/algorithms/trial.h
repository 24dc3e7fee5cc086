// Parameters of the collectives' tests: worlds, sizes, operations.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtrun/abi.h"

namespace dtrun::algorithms {

inline constexpr int kMostRanks = 9;

// A sum of int32, unless the caller changes it.
inline dtrun_op Op(std::int32_t kind, const void* send, void* recv, std::size_t count) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_INT32;
  op.reduce = DTRUN_SUM;
  op.root = -1;
  op.peer = -1;
  op.send = send;
  op.recv = recv;
  op.count = count;
  return op;
}

// Below, between and above the sizes at which the algorithms change; odd.
inline constexpr std::size_t kCounts[] = {0, 1, 3, 1003, 20'001, 200'003};

}  // namespace dtrun::algorithms
