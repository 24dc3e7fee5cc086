#include "combine.h"

#include <algorithm>
#include <iterator>

#include "dtrun/kernels.hpp"

namespace dtrun::mpi_plugin {
namespace {

using Function = void (*)(void*, void*, int*, MPI_Datatype*);

// MPI gives a user's function no context, so there is one for each pair.
template <std::int32_t Dtype, std::int32_t Reduce>
void Combine(void* in, void* inout, int* count, MPI_Datatype*) {
  static const kernels::Reduce reduce = kernels::ReduceFor(Dtype, Reduce);
  const void* const sources[] = {in, inout};
  reduce(inout, sources, 2, static_cast<std::size_t>(*count));
}

struct Entry {
  std::int32_t dtype;
  std::int32_t reduce;
  Function function;
};

template <std::int32_t Dtype, std::int32_t Reduce>
constexpr Entry Make() {
  return {Dtype, Reduce, &Combine<Dtype, Reduce>};
}

// Open MPI 4.1's op/avx component adds integers of 8 and 16 bits with saturation.
constexpr Entry kEntries[] = {
    Make<DTRUN_INT8, DTRUN_SUM>(),    Make<DTRUN_UINT8, DTRUN_SUM>(),    Make<DTRUN_INT16, DTRUN_SUM>(),
    Make<DTRUN_UINT16, DTRUN_SUM>(),  Make<DTRUN_INT8, DTRUN_PROD>(),    Make<DTRUN_UINT8, DTRUN_PROD>(),
    Make<DTRUN_INT16, DTRUN_PROD>(),  Make<DTRUN_UINT16, DTRUN_PROD>(),  Make<DTRUN_FLOAT16, DTRUN_MIN>(),
    Make<DTRUN_FLOAT16, DTRUN_MAX>(), Make<DTRUN_BFLOAT16, DTRUN_MIN>(), Make<DTRUN_BFLOAT16, DTRUN_MAX>(),
    Make<DTRUN_FLOAT32, DTRUN_MIN>(), Make<DTRUN_FLOAT32, DTRUN_MAX>(),  Make<DTRUN_FLOAT64, DTRUN_MIN>(),
    Make<DTRUN_FLOAT64, DTRUN_MAX>(), Make<DTRUN_BOOL, DTRUN_SUM>(),     Make<DTRUN_BOOL, DTRUN_PROD>(),
    Make<DTRUN_BOOL, DTRUN_MIN>(),    Make<DTRUN_BOOL, DTRUN_MAX>(),     Make<DTRUN_BOOL, DTRUN_BAND>(),
    Make<DTRUN_BOOL, DTRUN_BOR>(),    Make<DTRUN_BOOL, DTRUN_BXOR>(),    Make<DTRUN_BOOL, DTRUN_LAND>(),
    Make<DTRUN_BOOL, DTRUN_LOR>(),
};

bool IsHalf(std::int32_t dtype) { return dtype == DTRUN_FLOAT16 || dtype == DTRUN_BFLOAT16; }

MPI_Datatype TypeFor(const Api& api, std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT32: return api.float32;
    case DTRUN_FLOAT64: return api.float64;
    case DTRUN_INT8: return api.int8;
    case DTRUN_INT16: return api.int16;
    case DTRUN_INT32: return api.int32;
    case DTRUN_INT64: return api.int64;
    case DTRUN_UINT32: return api.uint32;
    case DTRUN_UINT64: return api.uint64;
    case DTRUN_COMPLEX64: return api.complex64;
    case DTRUN_COMPLEX128: return api.complex128;
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16:
    case DTRUN_UINT16: return api.uint16;
    default: return api.uint8;
  }
}

}  // namespace

Combiners::Combiners(const Api& api) : api_(api) {
  for (const Entry& entry : kEntries) {
    MPI_Op op;
    api.Check(api.op_create(entry.function, 1, &op), "MPI_Op_create");
    own_[static_cast<std::size_t>(entry.dtype)][static_cast<std::size_t>(entry.reduce)] = op;
  }
}

bool Combiners::IsNative(std::int32_t dtype, std::int32_t reduce) {
  if (IsHalf(dtype) || reduce == DTRUN_AVG || reduce == DTRUN_PREMUL_SUM) return false;
  return std::none_of(std::begin(kEntries), std::end(kEntries),
                      [&](const Entry& entry) { return entry.dtype == dtype && entry.reduce == reduce; });
}

Reduction Combiners::Find(std::int32_t dtype, std::int32_t reduce) const {
  const bool half = IsHalf(dtype);
  const bool compares = reduce == DTRUN_MIN || reduce == DTRUN_MAX;
  if (half && !compares) return {api_.float32, reduce == DTRUN_PROD ? api_.prod : api_.sum, true};
  const MPI_Datatype type = TypeFor(api_, dtype);
  if (const auto& own = own_[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(reduce)])
    return {type, *own};
  switch (reduce) {
    case DTRUN_PROD: return {type, api_.prod};
    case DTRUN_MIN: return {type, api_.min};
    case DTRUN_MAX: return {type, api_.max};
    case DTRUN_BAND: return {type, api_.band};
    case DTRUN_BOR: return {type, api_.bor};
    case DTRUN_BXOR: return {type, api_.bxor};
    case DTRUN_LAND: return {type, api_.land};
    case DTRUN_LOR: return {type, api_.lor};
    default: return {type, api_.sum};
  }
}

MPI_Datatype Combiners::Mover(std::size_t width) const {
  switch (width) {
    case 1: return api_.uint8;
    case 2: return api_.uint16;
    case 4: return api_.uint32;
    case 8: return api_.uint64;
    default: return api_.complex128;
  }
}

}  // namespace dtrun::mpi_plugin
