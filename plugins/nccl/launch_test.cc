#include "launch.h"

#include <gtest/gtest.h>

namespace dtrun::nccl_plugin {
namespace {

TEST(EncodeScalar, RoundsToTheTypeOrThatOfItsParts) {
  EXPECT_EQ(EncodeScalar(1.5, DTRUN_FLOAT16).word, 0x3e00);
  EXPECT_EQ(EncodeScalar(1.5, DTRUN_BFLOAT16).word, 0x3fc0);
  EXPECT_EQ(EncodeScalar(0.1, DTRUN_COMPLEX64).float32, 0.1f);
  EXPECT_EQ(EncodeScalar(0.1, DTRUN_COMPLEX128).float64, 0.1);
  EXPECT_EQ(EncodeScalar(0.1, DTRUN_FLOAT64).float64, 0.1);
  EXPECT_EQ(EncodeScalar(0.1, DTRUN_FLOAT32).float32, 0.1f);
}

}  // namespace
}  // namespace dtrun::nccl_plugin
