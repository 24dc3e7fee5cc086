// The operations that `dtrun bench` measures, their buffer sizes, and bus bandwidth.
//
// Sizes and factors match nccl-tests (its doc/PERFORMANCE.md), so that results are comparable: a size S is
// the whole vector, even if each rank holds only a part of it. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::bench {

enum class Operation {
  kAllreduce,
  kReduce,
  kBroadcast,
  kAllgather,
  kReduceScatter,
  kAlltoall,
  kSendrecv,  // every rank sends to the next one and receives from the previous one
  kBarrier,
  kCopy  // memcpy on all ranks at once: the reference for the efficiency E
};

const char* OperationName(Operation operation);
// "allreduce", ...; copy is internal.
Result<Operation> ParseOperation(std::string_view name);
// "allreduce, reduce, ...", for help and errors.
std::string OperationNames();

// Element counts of one call on each rank.
struct Shape {
  std::uint64_t count = 0;  // the operation's count argument
  std::uint64_t send = 0;   // elements in the send buffer
  std::uint64_t recv = 0;   // elements in the receive buffer
  std::uint64_t bytes = 0;  // S: the whole vector
};

// The largest call of at most `bytes`, but with at least one element per rank.
Shape ShapeOf(Operation operation, std::uint64_t ranks, std::uint64_t bytes, std::uint64_t element_size);

// busbw = algbw x this.
double BusFactor(Operation operation, std::uint64_t ranks);

}  // namespace dtrun::bench
