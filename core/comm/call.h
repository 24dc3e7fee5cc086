// A collective call as all ranks must make it: the contract, in 24 bytes.
//
// Travels in shared memory: in the entries of the engine and in the flight recorder. Values;
// any thread.
#pragma once

#include <cstdint>
#include <string>

#include "dtrun/abi/op.h"

namespace dtrun::comm {

struct Call {
  std::uint8_t kind = 0;
  std::uint8_t dtype = 0;
  std::uint8_t reduce = 0;
  std::uint8_t reserved = 0;
  std::int32_t root = -1;
  std::uint64_t count = 0;  // 0 where ranks may differ
  std::uint64_t shape = 0;  // digest of the counts per rank that all must agree on; 0: none

  friend bool operator==(const Call&, const Call&) = default;
};

// What `op` has in common with the calls of the other ranks, of which there are `size`.
Call CallOf(const dtrun_op& op, int size);

// "allreduce (float32 x 1024, sum)".
std::string CallText(const Call& call);

}  // namespace dtrun::comm
