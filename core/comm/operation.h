// The words and sizes of operations, and the checks before a backend sees one.
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

// "allreduce #17 on 'world' (float32 x 1024, sum)". Reads no array: those are gone once the
// call that started the operation has returned.
std::string Describe(const dtrun_op& op, std::string_view comm);

// The communicator that an operation is meant for.
struct Scope {
  std::string_view comm;
  std::string_view backend;
  int rank = 0;
  int size = 1;
  dtrun_backend_caps caps{};
  std::int32_t device_kind = DTRUN_DEVICE_HOST;  // whose memory the operation moves
  std::int32_t device_index = -1;
  // query_support of the backend, null where the masks say all.
  dtrun_status (*query_support)(dtrun_instance*, const dtrun_support_query*, dtrun_error*) = nullptr;
  dtrun_instance* instance = nullptr;
};

// DTRUN_INVALID_ARGUMENT for what no backend could do: null or misaligned buffers, unknown
// types, ranks outside the world, overlap other than the in-place forms, parts that overlap
// or do not fit into memory. DTRUN_UNSUPPORTED for pairs of type and reduction that have no
// meaning, and for what this backend does not do. Allocates only on failure, and where the
// offsets of parts that are received do not rise.
Status Check(const dtrun_op& op, const Scope& scope);

// Sets every member that the kind of `op` does not use to what dtrun_op says of it.
void ClearUnused(dtrun_op& op, const Scope& scope);

// The elements that Describe names: `count`, or the sum of the counts where those stand in
// its place. REQUIRES Check(op).
std::uint64_t Elements(const dtrun_op& op, const Scope& scope);

// False when no rank has an element to move. Equal on all ranks. REQUIRES Check(op).
bool Moves(const dtrun_op& op, const Scope& scope);

}  // namespace dtrun::comm
