#include "core/base/suggest.h"

#include <gtest/gtest.h>

namespace dtrun {
namespace {

TEST(EditDistance, CountsEditsAndSwapsAndIgnoresCase) {
  EXPECT_EQ(EditDistance("gloo", "gloo"), 0);
  EXPECT_EQ(EditDistance("glo", "gloo"), 1);
  EXPECT_EQ(EditDistance("golo", "gloo"), 1);
  EXPECT_EQ(EditDistance("GLOO", "gloo"), 0);
  EXPECT_EQ(EditDistance("", "mpi"), 3);
}

TEST(Nearest, FindsTheSlipAndNothingFarAway) {
  const std::vector<std::string> names = {"gloo", "mpi", "ucx", "nccl"};
  EXPECT_EQ(Nearest("golo", names), "gloo");
  EXPECT_EQ(Nearest("ncl", names), "nccl");
  EXPECT_EQ(Nearest("infiniband", names), std::nullopt);
  EXPECT_EQ(Nearest("x", names), std::nullopt);
}

}  // namespace
}  // namespace dtrun
