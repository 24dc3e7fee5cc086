#include "element.h"

#include <optional>
#include <string>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::nccl_plugin {
namespace {

// What NCCL computes with.
std::optional<Wire> Number(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT16: return Wire{nccl::kFloat16, 1};
    case DTRUN_BFLOAT16: return Wire{nccl::kBfloat16, 1};
    case DTRUN_FLOAT32: return Wire{nccl::kFloat32, 1};
    case DTRUN_FLOAT64: return Wire{nccl::kFloat64, 1};
    case DTRUN_INT32: return Wire{nccl::kInt32, 1};
    case DTRUN_INT64: return Wire{nccl::kInt64, 1};
    case DTRUN_UINT8: return Wire{nccl::kUint8, 1};
    case DTRUN_INT8: return Wire{nccl::kInt8, 1};
    case DTRUN_UINT32: return Wire{nccl::kUint32, 1};
    case DTRUN_UINT64: return Wire{nccl::kUint64, 1};
    case DTRUN_COMPLEX64: return Wire{nccl::kFloat32, 2};
    case DTRUN_COMPLEX128: return Wire{nccl::kFloat64, 2};
    // No 16-bit integers. The maximum of bytes is no logical or: any byte that is not 0 is true, and
    // results are 0 or 1.
    default: return std::nullopt;
  }
}

}  // namespace

Wire MoveAs(std::int32_t dtype) { return {nccl::kInt8, kernels::ElementBytes(dtype)}; }

bool CanReduce(std::int32_t dtype, std::int32_t reduce) {
  const std::optional<Wire> wire = Number(dtype);
  const bool complex = wire && wire->per_element == 2;
  return wire && (SupportedReduces() >> reduce & 1) != 0 && !(complex && reduce == DTRUN_PROD);
}

Wire ReduceAs(std::int32_t dtype, std::int32_t reduce) {
  if (CanReduce(dtype, reduce)) return *Number(dtype);
  throw sdk::Failure(DTRUN_UNSUPPORTED, std::string("nccl has no ") + sdk::ReductionName(reduce) + " of " +
                                            sdk::TypeName(dtype) +
                                            "; convert the buffer or choose another backend for it");
}

}  // namespace dtrun::nccl_plugin
