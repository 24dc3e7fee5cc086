#include "element.h"

#include <iterator>
#include <optional>
#include <string>

#include "dtrun/plugin/names.hpp"

namespace dtrun::nccl_plugin {
namespace {

enum class Family { kFloating, kInteger, kBool, kComplex };

struct Type {
  std::uint64_t bytes;
  Family family;
  std::optional<Wire> reduced_as;  // nullopt: NCCL cannot compute with it
};

// In the order of types.h, from 1.
constexpr Type kTypes[] = {
    {2, Family::kFloating, Wire{nccl::kFloat16, 1}},
    {2, Family::kFloating, Wire{nccl::kBfloat16, 1}},
    {4, Family::kFloating, Wire{nccl::kFloat32, 1}},
    {8, Family::kFloating, Wire{nccl::kFloat64, 1}},
    {4, Family::kInteger, Wire{nccl::kInt32, 1}},
    {8, Family::kInteger, Wire{nccl::kInt64, 1}},
    {1, Family::kInteger, Wire{nccl::kUint8, 1}},
    {1, Family::kInteger, Wire{nccl::kInt8, 1}},
    {2, Family::kInteger, std::nullopt},
    {2, Family::kInteger, std::nullopt},
    {4, Family::kInteger, Wire{nccl::kUint32, 1}},
    {8, Family::kInteger, Wire{nccl::kUint64, 1}},
    // The maximum of bytes is no logical or: any byte that is not 0 is true, and results are 0 or 1.
    {1, Family::kBool, std::nullopt},
    {8, Family::kComplex, Wire{nccl::kFloat32, 2}},
    {16, Family::kComplex, Wire{nccl::kFloat64, 2}},
};
static_assert(std::size(kTypes) == DTRUN_DTYPE_COUNT - 1);

const Type* Find(std::int32_t dtype) {
  return dtype > 0 && dtype < DTRUN_DTYPE_COUNT ? &kTypes[dtype - 1] : nullptr;
}

bool Known(std::int32_t reduce) { return reduce > 0 && reduce < DTRUN_REDUCE_COUNT; }

// The table of types.h.
bool HasMeaning(Family family, std::int32_t reduce) {
  const auto in = [&](std::uint64_t mask) { return (mask >> reduce & 1) != 0; };
  switch (family) {
    case Family::kFloating:
      return in(sdk::Bits({DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_AVG, DTRUN_PREMUL_SUM}));
    case Family::kInteger:
    case Family::kBool: return !in(sdk::Bits({DTRUN_AVG, DTRUN_PREMUL_SUM}));
    case Family::kComplex: return in(sdk::Bits({DTRUN_SUM, DTRUN_PROD, DTRUN_AVG, DTRUN_PREMUL_SUM}));
  }
  return false;
}

bool NcclHas(Family family, std::int32_t reduce) {
  if (family == Family::kComplex && reduce == DTRUN_PROD) return false;
  return (SupportedReduces() >> reduce & 1) != 0;
}

}  // namespace

std::uint64_t ElementBytes(std::int32_t dtype) {
  const Type* const type = Find(dtype);
  return type == nullptr ? 0 : type->bytes;
}

Wire MoveAs(std::int32_t dtype) { return {nccl::kInt8, ElementBytes(dtype)}; }

Wire ReduceAs(std::int32_t dtype, std::int32_t reduce) {
  const Type* const type = Find(dtype);
  if (type == nullptr)
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "unknown element type " + std::to_string(dtype));
  if (!Known(reduce))
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "unknown reduction " + std::to_string(reduce));
  const std::string pair = std::string(sdk::ReductionName(reduce)) + " of " + sdk::TypeName(dtype);
  if (!HasMeaning(type->family, reduce)) throw sdk::Failure(DTRUN_INVALID_ARGUMENT, pair + " has no meaning");
  if (!type->reduced_as || !NcclHas(type->family, reduce)) {
    throw sdk::Failure(DTRUN_UNSUPPORTED,
                       "nccl has no " + pair + "; convert the buffer or choose another backend for it");
  }
  return *type->reduced_as;
}

nccl::Reduction BuiltInReduction(std::int32_t reduce) {
  switch (reduce) {
    case DTRUN_PROD: return nccl::kProd;
    case DTRUN_MIN: return nccl::kMin;
    case DTRUN_MAX: return nccl::kMax;
    case DTRUN_AVG: return nccl::kAvg;
    default: return nccl::kSum;
  }
}

std::uint64_t SupportedReduces() {
  return sdk::Bits({DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_AVG, DTRUN_PREMUL_SUM});
}

std::uint64_t SupportedTypes() {
  std::uint64_t mask = 0;
  for (int dtype = 1; dtype < DTRUN_DTYPE_COUNT; ++dtype) mask |= sdk::Bits({dtype});
  return mask;
}

}  // namespace dtrun::nccl_plugin
