#include "element.h"

#include <gtest/gtest.h>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::nccl_plugin {
namespace {

dtrun_status StatusOf(std::int32_t dtype, std::int32_t reduce) {
  try {
    ReduceAs(dtype, reduce);
    return DTRUN_OK;
  } catch (const sdk::Failure& failure) {
    return failure.code();
  }
}

TEST(Element, HasTheSizesOfTheAbi) {
  for (int dtype = -1; dtype <= DTRUN_DTYPE_COUNT; ++dtype) {
    EXPECT_EQ(ElementBytes(dtype), kernels::ElementBytes(dtype)) << sdk::TypeName(dtype);
  }
}

// A pair without a meaning is the caller's mistake; one that NCCL lacks is no mistake.
TEST(Element, TellsNonsenseFromWhatNcclLacks) {
  for (int dtype = 1; dtype < DTRUN_DTYPE_COUNT; ++dtype) {
    for (int reduce = 1; reduce < DTRUN_REDUCE_COUNT; ++reduce) {
      EXPECT_EQ(StatusOf(dtype, reduce) == DTRUN_INVALID_ARGUMENT, !kernels::Supports(dtype, reduce))
          << sdk::ReductionName(reduce) << " of " << sdk::TypeName(dtype);
    }
  }
  EXPECT_EQ(StatusOf(0, DTRUN_SUM), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(StatusOf(DTRUN_FLOAT32, DTRUN_REDUCE_COUNT), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(StatusOf(DTRUN_INT16, DTRUN_SUM), DTRUN_UNSUPPORTED);
  EXPECT_EQ(StatusOf(DTRUN_BOOL, DTRUN_LOR), DTRUN_UNSUPPORTED);
  EXPECT_EQ(StatusOf(DTRUN_INT32, DTRUN_BXOR), DTRUN_UNSUPPORTED);
  EXPECT_EQ(StatusOf(DTRUN_COMPLEX128, DTRUN_PROD), DTRUN_UNSUPPORTED);
  EXPECT_EQ(StatusOf(DTRUN_BFLOAT16, DTRUN_AVG), DTRUN_OK);
}

TEST(Element, ReducesComplexNumbersAsPairsAndMovesEverythingAsBytes) {
  const Wire wire = ReduceAs(DTRUN_COMPLEX64, DTRUN_SUM);
  EXPECT_EQ(wire.type, nccl::kFloat32);
  EXPECT_EQ(wire.per_element, 2u);
  EXPECT_EQ(MoveAs(DTRUN_COMPLEX128).type, nccl::kInt8);
  EXPECT_EQ(MoveAs(DTRUN_COMPLEX128).per_element, 16u);
}

TEST(Element, OffersEveryTypeAndSixReductions) {
  EXPECT_EQ(SupportedTypes(), (std::uint64_t{1} << DTRUN_DTYPE_COUNT) - 2);
  EXPECT_EQ(SupportedReduces(), (std::uint64_t{1} << (DTRUN_PREMUL_SUM + 1)) - 2);
}

}  // namespace
}  // namespace dtrun::nccl_plugin
