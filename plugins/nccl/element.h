// Element types and reductions: what has a meaning, what NCCL can do, and in whose words.
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

// Bytes of one element; 0 for an unknown type.
std::uint64_t ElementBytes(std::int32_t dtype);

// For moving: any known type, as bytes.
Wire MoveAs(std::int32_t dtype);

// For reducing. Throws sdk::Failure: DTRUN_INVALID_ARGUMENT where the table of types.h has no
// meaning for the pair, DTRUN_UNSUPPORTED where NCCL lacks it. A complex number is two floats
// to a sum, an average and a product with a real scale.
Wire ReduceAs(std::int32_t dtype, std::int32_t reduce);

// The built-in one; for DTRUN_PREMUL_SUM the caller makes its own. REQUIRES that ReduceAs
// accepted it.
nccl::Reduction BuiltInReduction(std::int32_t reduce);

// Masks of dtrun_backend_caps: what is supported in at least one pair.
std::uint64_t SupportedReduces();
std::uint64_t SupportedTypes();

}  // namespace dtrun::nccl_plugin
