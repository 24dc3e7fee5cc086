// The words and sizes of operations, and the checks before a backend sees one.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "dtrun/abi/backend.h"

namespace dtrun::comm {

// Bytes of one element; 0 for an unknown type. Inline: on the path of every call.
constexpr std::uint64_t DtypeSize(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16: return 2;
    case DTRUN_FLOAT32:
    case DTRUN_INT32: return 4;
    case DTRUN_FLOAT64:
    case DTRUN_INT64: return 8;
    case DTRUN_UINT8: return 1;
    default: return 0;
  }
}

constexpr bool IsCollective(std::int32_t kind) { return kind != DTRUN_SEND && kind != DTRUN_RECV; }

const char* KindText(std::int32_t kind);      // "allreduce"
const char* DtypeText(std::int32_t dtype);    // "float32"
const char* ReduceText(std::int32_t reduce);  // "sum"

// "allreduce #17 on 'world' (float32 x 1024, sum)".
std::string Describe(const dtrun_op& op, std::string_view comm);

// The communicator that an operation is meant for.
struct Scope {
  std::string_view comm;
  std::string_view backend;
  int rank = 0;
  int size = 1;
  dtrun_backend_caps caps{};
};

// DTRUN_INVALID_ARGUMENT for what no backend could do: null or misaligned buffers, unknown
// types, ranks outside the world, overlap other than the in-place forms.
// DTRUN_UNSUPPORTED for what this backend does not do. Allocates only on failure.
Status Check(const dtrun_op& op, const Scope& scope);

}  // namespace dtrun::comm
