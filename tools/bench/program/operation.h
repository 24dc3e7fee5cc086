// What `dtrun bench` measures: operations, how a size becomes buffers, and bus bandwidth.
//
// Sizes and factors are those of nccl-tests (doc/PERFORMANCE.md there), so that figures compare:
// a size S is the whole vector, also where ranks hold a part of it. Pure functions; any thread.
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
  kSendrecv,  // every rank sends to the next one and receives from the one before
  kBarrier,
  kCopy  // memcpy on all ranks at once: the bound that E is measured against
};

const char* OperationName(Operation operation);
// "allreduce", ...; copy is not for users.
Result<Operation> ParseOperation(std::string_view name);
// "allreduce, reduce, ...", for help and errors.
std::string OperationNames();

// Elements of one call on each rank.
struct Shape {
  std::uint64_t count = 0;  // what the operation is given
  std::uint64_t send = 0;   // elements in the send buffer
  std::uint64_t recv = 0;   // elements in the receive buffer
  std::uint64_t bytes = 0;  // S: the whole vector
};

// The largest call of at most `bytes`, but at least one element for every rank.
Shape ShapeOf(Operation operation, std::uint64_t ranks, std::uint64_t bytes, std::uint64_t element_size);

// busbw = algbw x this.
double BusFactor(Operation operation, std::uint64_t ranks);

}  // namespace dtrun::bench
