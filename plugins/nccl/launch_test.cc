#include "launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dtrun/kernels.hpp"

namespace dtrun::nccl_plugin {
namespace {

TEST(EncodeScalar, RoundsToSixteenBitsAsTheKernelsDo) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, -0.0f, 1.0f, -2.5f, 1.0f / 3, 65504.0f, 65520.0f, 1e-5f, 6e-8f, 1e-9f,
                            1e30f, infinity, 1.00048828125f, 1.001953125f * 1.5f}) {
    std::uint16_t word = 0;
    kernels::Narrow(&word, &value, 1, DTRUN_FLOAT16);
    EXPECT_EQ(EncodeScalar(static_cast<double>(value), nccl::kFloat16).word, word) << value;
    kernels::Narrow(&word, &value, 1, DTRUN_BFLOAT16);
    EXPECT_EQ(EncodeScalar(static_cast<double>(value), nccl::kBfloat16).word, word) << value;
  }
}

TEST(EncodeScalar, KeepsWiderTypes) {
  EXPECT_EQ(EncodeScalar(0.1, nccl::kFloat64).float64, 0.1);
  EXPECT_EQ(EncodeScalar(0.1, nccl::kFloat32).float32, 0.1f);
}

}  // namespace
}  // namespace dtrun::nccl_plugin
