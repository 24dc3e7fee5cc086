#include "tools/dtrun/command_line/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::cli {
namespace {

using ::testing::HasSubstr;

TEST(ForeignFlags, MeanTheSameUnderBothSpellings) {
  for (const char* flag : {"--nproc_per_node", "--nproc-per-node", "-ppn", "--ntasks-per-node"}) {
    ASSERT_NE(FindForeignFlag(flag), nullptr) << flag;
    EXPECT_EQ(FindForeignFlag(flag)->ours, "--processes-per-host") << flag;
  }
  EXPECT_EQ(FindForeignFlag("-np")->ours, "--ranks");
  EXPECT_EQ(FindForeignFlag("--num_processes")->ours, "--ranks");
}

TEST(ForeignFlags, HaveANextStepWhereNothingIsTheSame) {
  for (const char* flag : {"--nnodes", "--rdzv_endpoint", "-x", "--mca", "--partition", "--gloo"}) {
    const ForeignFlag* found = FindForeignFlag(flag);
    ASSERT_NE(found, nullptr) << flag;
    EXPECT_TRUE(found->ours.empty()) << flag;
    EXPECT_FALSE(found->instead.empty()) << flag;
  }
  EXPECT_THAT(std::string(FindForeignFlag("--rdzv_id")->instead), HasSubstr("dtrun torchrun"));
}

TEST(ForeignFlags, AreNotFoundByAPart) {
  EXPECT_EQ(FindForeignFlag("--no"), nullptr);
  EXPECT_EQ(FindForeignFlag("-"), nullptr);
  EXPECT_EQ(FindForeignFlag(""), nullptr);
  EXPECT_EQ(FindForeignFlag("--epochs"), nullptr);
}

}  // namespace
}  // namespace dtrun::cli
