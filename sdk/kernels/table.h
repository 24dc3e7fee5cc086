// Fills the table of a variant with its loops. Included by each variant, last.
#pragma once

#include "loops.h"
#include "variant.h"

namespace dtrun::kernels {
namespace {

constexpr int kCached = 0;
constexpr int kStreamed = 1;

using Row = Reduce (&)[DTRUN_REDUCE_COUNT][2];

template <class Type, class Operation, class Finish = Keep, std::size_t kElements = 1>
constexpr void FillHot(Row row, int reduce) {
  row[reduce][kCached] = &ReduceLoop<Type, Operation, Finish, false, true, kElements>;
  row[reduce][kStreamed] = &ReduceLoop<Type, Operation, Finish, true, true, kElements>;
}
// Seldom used: smaller code, and ordinary stores always.
template <class Type, class Operation>
constexpr void FillCold(Row row, int reduce) {
  row[reduce][kCached] = row[reduce][kStreamed] = &ReduceLoop<Type, Operation, Keep, false, false>;
}

template <class Type, std::size_t kElements = 1>
constexpr void FillSums(Row row) {
  FillHot<Type, Sum, Keep, kElements>(row, DTRUN_SUM);
  FillHot<Type, Sum, Keep, kElements>(row, DTRUN_PREMUL_SUM);
  FillHot<Type, Sum, Divide<typename Type::Lane>, kElements>(row, DTRUN_AVG);
}

template <class Type>
constexpr void FillFloating(Row row) {
  FillSums<Type>(row);
  FillHot<Type, Product>(row, DTRUN_PROD);
  FillHot<Type, Minimum>(row, DTRUN_MIN);
  FillHot<Type, Maximum>(row, DTRUN_MAX);
}

template <class T>
constexpr void FillComplex(Row row) {
  FillSums<Native<T>, 2>(row);
  row[DTRUN_PROD][kCached] = row[DTRUN_PROD][kStreamed] = &ComplexProduct<T>;
}

// Unsigned arithmetic wraps, and gives the bits that signed numbers have too.
template <class T, class Unsigned>
constexpr void FillInteger(Row row) {
  FillHot<Native<Unsigned>, Sum>(row, DTRUN_SUM);
  FillCold<Native<Unsigned>, Product>(row, DTRUN_PROD);
  FillCold<Native<T>, Minimum>(row, DTRUN_MIN);
  FillCold<Native<T>, Maximum>(row, DTRUN_MAX);
  FillCold<Native<Unsigned>, And>(row, DTRUN_BAND);
  FillCold<Native<Unsigned>, Or>(row, DTRUN_BOR);
  FillCold<Native<Unsigned>, Xor>(row, DTRUN_BXOR);
  FillCold<Truth<Unsigned>, And>(row, DTRUN_LAND);
  FillCold<Truth<Unsigned>, Or>(row, DTRUN_LOR);
}

constexpr void FillBool(Row row) {
  constexpr int kAll[] = {DTRUN_PROD, DTRUN_MIN, DTRUN_BAND, DTRUN_LAND};
  constexpr int kAny[] = {DTRUN_SUM, DTRUN_MAX, DTRUN_BOR, DTRUN_LOR};
  for (const int reduce : kAll) FillCold<Truth<std::uint8_t>, And>(row, reduce);
  for (const int reduce : kAny) FillCold<Truth<std::uint8_t>, Or>(row, reduce);
  FillCold<Truth<std::uint8_t>, Xor>(row, DTRUN_BXOR);
}

constexpr Variant MakeVariant(const char* name) {
  Variant variant{};
  variant.name = name;
  FillFloating<Half>(variant.reduce[DTRUN_FLOAT16]);
  FillFloating<Bfloat16>(variant.reduce[DTRUN_BFLOAT16]);
  FillFloating<Native<float>>(variant.reduce[DTRUN_FLOAT32]);
  FillFloating<Native<double>>(variant.reduce[DTRUN_FLOAT64]);
  FillInteger<std::int8_t, std::uint8_t>(variant.reduce[DTRUN_INT8]);
  FillInteger<std::int16_t, std::uint16_t>(variant.reduce[DTRUN_INT16]);
  FillInteger<std::int32_t, std::uint32_t>(variant.reduce[DTRUN_INT32]);
  FillInteger<std::int64_t, std::uint64_t>(variant.reduce[DTRUN_INT64]);
  FillInteger<std::uint8_t, std::uint8_t>(variant.reduce[DTRUN_UINT8]);
  FillInteger<std::uint16_t, std::uint16_t>(variant.reduce[DTRUN_UINT16]);
  FillInteger<std::uint32_t, std::uint32_t>(variant.reduce[DTRUN_UINT32]);
  FillInteger<std::uint64_t, std::uint64_t>(variant.reduce[DTRUN_UINT64]);
  FillBool(variant.reduce[DTRUN_BOOL]);
  FillComplex<float>(variant.reduce[DTRUN_COMPLEX64]);
  FillComplex<double>(variant.reduce[DTRUN_COMPLEX128]);
  variant.scale[DTRUN_FLOAT16] = &ScaleLoop<Half>;
  variant.scale[DTRUN_BFLOAT16] = &ScaleLoop<Bfloat16>;
  variant.scale[DTRUN_FLOAT32] = &ScaleLoop<Native<float>>;
  variant.scale[DTRUN_FLOAT64] = &ScaleLoop<Native<double>>;
  variant.scale[DTRUN_COMPLEX64] = &ScaleLoop<Native<float>, 2>;
  variant.scale[DTRUN_COMPLEX128] = &ScaleLoop<Native<double>, 2>;
  variant.widen[0] = &WidenLoop<Half>;
  variant.widen[1] = &WidenLoop<Bfloat16>;
  variant.narrow[0] = &NarrowLoop<Half>;
  variant.narrow[1] = &NarrowLoop<Bfloat16>;
  variant.streaming_copy = &StreamingCopyLoop;
  return variant;
}

}  // namespace
}  // namespace dtrun::kernels
