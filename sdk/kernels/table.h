// Fills the table of a variant with its loops. Included by each variant, last.
// Constant from then on; any thread.
#pragma once

#include "loops.h"
#include "variant.h"

namespace dtrun::kernels {
namespace {

inline constexpr int kCached = 0;
inline constexpr int kStreamed = 1;

using Row = Kernels (&)[sdk::kReductionEnd];

template <class Type, class Operation, class Finish = Keep, std::size_t kElements = 1>
constexpr void FillHot(Row row, int reduce) {
  row[reduce] = {{&ReduceLoop<Type, Operation, Finish, false, true, kElements>,
                  &ReduceLoop<Type, Operation, Finish, true, true, kElements>},
                 {&TradeLoop<Type, Operation, Finish, false, kElements>,
                  &TradeLoop<Type, Operation, Finish, true, kElements>}};
}
// Seldom used: smaller code, and ordinary stores always.
template <class Type, class Operation>
constexpr void FillCold(Row row, int reduce) {
  row[reduce].reduce[kCached] = row[reduce].reduce[kStreamed] =
      &ReduceLoop<Type, Operation, Keep, false, false>;
  row[reduce].trade[kCached] = row[reduce].trade[kStreamed] = &TradeLoop<Type, Operation, Keep, false>;
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
  row[DTRUN_PROD] = {{&ComplexProduct<T>, &ComplexProduct<T>},
                     {&ComplexProductTrade<T>, &ComplexProductTrade<T>}};
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

template <class Type>
constexpr void FillSixteenBits(Variant& variant, int dtype) {
  FillFloating<Type>(variant.combine[dtype]);
  variant.scale[dtype] = &ScaleLoop<Type>;
  variant.widen[dtype == DTRUN_FLOAT16 ? 0 : 1] = &WidenLoop<Type>;
  variant.narrow[dtype == DTRUN_FLOAT16 ? 0 : 1] = &NarrowLoop<Type>;
}

template <class Half, class Bfloat16>
constexpr Variant MakeVariant(const char* name) {
  Variant variant{};
  variant.name = name;
  FillSixteenBits<Half>(variant, DTRUN_FLOAT16);
  FillSixteenBits<Bfloat16>(variant, DTRUN_BFLOAT16);
  FillFloating<Native<float>>(variant.combine[DTRUN_FLOAT32]);
  FillFloating<Native<double>>(variant.combine[DTRUN_FLOAT64]);
  FillInteger<std::int8_t, std::uint8_t>(variant.combine[DTRUN_INT8]);
  FillInteger<std::int16_t, std::uint16_t>(variant.combine[DTRUN_INT16]);
  FillInteger<std::int32_t, std::uint32_t>(variant.combine[DTRUN_INT32]);
  FillInteger<std::int64_t, std::uint64_t>(variant.combine[DTRUN_INT64]);
  FillInteger<std::uint8_t, std::uint8_t>(variant.combine[DTRUN_UINT8]);
  FillInteger<std::uint16_t, std::uint16_t>(variant.combine[DTRUN_UINT16]);
  FillInteger<std::uint32_t, std::uint32_t>(variant.combine[DTRUN_UINT32]);
  FillInteger<std::uint64_t, std::uint64_t>(variant.combine[DTRUN_UINT64]);
  FillBool(variant.combine[DTRUN_BOOL]);
  FillComplex<float>(variant.combine[DTRUN_COMPLEX64]);
  FillComplex<double>(variant.combine[DTRUN_COMPLEX128]);
  variant.scale[DTRUN_FLOAT32] = &ScaleLoop<Native<float>>;
  variant.scale[DTRUN_FLOAT64] = &ScaleLoop<Native<double>>;
  variant.scale[DTRUN_COMPLEX64] = &ScaleLoop<Native<float>, 2>;
  variant.scale[DTRUN_COMPLEX128] = &ScaleLoop<Native<double>, 2>;
  variant.streaming_copy = &StreamingCopyLoop;
  return variant;
}

}  // namespace
}  // namespace dtrun::kernels
