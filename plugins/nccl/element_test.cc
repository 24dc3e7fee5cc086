#include <gtest/gtest.h>

#include "operation.h"

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

TEST(Element, RefusesWhatNcclLacks) {
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

TEST(Element, OffersSixReductions) {
  EXPECT_EQ(SupportedReduces(), (std::uint64_t{1} << (DTRUN_PREMUL_SUM + 1)) - 2);
}

}  // namespace
}  // namespace dtrun::nccl_plugin
