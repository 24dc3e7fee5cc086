// Operations: their texts and sizes, and the checks before a backend gets one.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "dtrun/abi/backend.h"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {

// Bytes of one element; 0 for an unknown type. Inline: on the path of every call.
constexpr std::uint64_t DtypeSize(std::int32_t dtype) { return kernels::ElementBytes(dtype); }

// "allreduce #17 on 'world' (float32 x 1024, sum)". Reads no array: arrays are gone once the call that
// started the operation has returned.
std::string Describe(const dtrun_op& op, std::string_view comm);

// The communicator that an operation addresses.
struct Scope {
  std::string_view comm;
  std::string_view backend;
  int rank = 0;
  int size = 1;
  dtrun_backend_caps caps{};
  std::int32_t device_kind = DTRUN_DEVICE_HOST;  // of the memory that the operation moves
  std::int32_t device_index = -1;
  // The backend's query_support; null if the masks are complete.
  dtrun_status (*query_support)(dtrun_instance*, const dtrun_support_query*, dtrun_error*) = nullptr;
  dtrun_instance* instance = nullptr;
};

// DTRUN_INVALID_ARGUMENT for what no backend could do: null or misaligned buffers, unknown types, ranks
// outside the world, overlap other than the in-place forms, parts that overlap or do not fit into memory.
// DTRUN_UNSUPPORTED for meaningless pairs of type and reduction, and for what this backend does not support.
// Allocates only on failure, or if receive offsets do not ascend.
Status Check(const dtrun_op& op, const Scope& scope);

// Sets every member that the kind of `op` does not use to the value that dtrun_op documents.
void ClearUnused(dtrun_op& op, const Scope& scope);

// The element count in Describe: `count`, or the sum of the counts that replace it. REQUIRES Check(op).
std::uint64_t Elements(const dtrun_op& op, const Scope& scope);

// False if no rank has an element to move. Equal on all ranks. REQUIRES Check(op).
bool Moves(const dtrun_op& op, const Scope& scope);

}  // namespace dtrun::comm
