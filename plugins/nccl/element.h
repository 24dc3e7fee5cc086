// Element types and reductions: what NCCL can do, and in its words.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>

#include "dtrun/plugin.hpp"
#include "nccl_abi.h"

namespace dtrun::nccl_plugin {

// A buffer in NCCL's words: `per_element` values of `type` stand for one element.
struct Wire {
  nccl::DataType type;
  std::uint64_t per_element;
};

// For moving: as bytes.
Wire MoveAs(std::int32_t dtype);

// For reducing. Throws sdk::Failure, DTRUN_UNSUPPORTED, where NCCL lacks the pair. A complex number
// is two floats to a sum, an average and a product with a real scale.
Wire ReduceAs(std::int32_t dtype, std::int32_t reduce);

// Whether NCCL has the pair.
bool CanReduce(std::int32_t dtype, std::int32_t reduce);

// Masks of dtrun_backend_caps: what is supported with at least one partner.
constexpr std::uint64_t SupportedReduces() {
  return sdk::Bits({DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_AVG, DTRUN_PREMUL_SUM});
}
constexpr std::uint64_t SupportedTypes() {
  return sdk::Bits({DTRUN_FLOAT16, DTRUN_BFLOAT16, DTRUN_FLOAT32, DTRUN_FLOAT64, DTRUN_INT32, DTRUN_INT64,
                    DTRUN_UINT8, DTRUN_INT8, DTRUN_UINT32, DTRUN_UINT64, DTRUN_COMPLEX64, DTRUN_COMPLEX128});
}

}  // namespace dtrun::nccl_plugin
