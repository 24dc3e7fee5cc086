#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kOptions = {"DTRUN_CONFIG_JOB_GRACE", "DTRUN_CONFIG_BACKEND_NAME"};

TEST(IgnoredVariables, AreToldOfWithTheOneThatWasMeant) {
  EXPECT_THAT(
      IgnoredVariables({{"DTRUN_LGO", "debug"},
                        {"DTRUN_CONFG_JOB_GRACE", "3s"},
                        {"DTRUN_JOB_GRACE", "3s"},
                        {"DTRUN_ZZZZZZ", "1"},
                        {"DTRUN_RANK", "3"}},
                       kOptions, {"gloo"}),
      ElementsAre("DTRUN_CONFG_JOB_GRACE is ignored: dtrun reads no such variable; did you mean "
                  "DTRUN_CONFIG_JOB_GRACE?",
                  "DTRUN_JOB_GRACE is ignored: dtrun reads no such variable; did you mean "
                  "DTRUN_CONFIG_JOB_GRACE?",
                  "DTRUN_LGO is ignored: dtrun reads no such variable; did you mean DTRUN_LOG?",
                  "DTRUN_RANK is ignored: dtrun sets it for each rank",
                  "DTRUN_ZZZZZZ is ignored: dtrun reads no such variable; an option is set by DTRUN_CONFIG_ "
                  "and its key, as in DTRUN_CONFIG_JOB_GRACE"));
}

TEST(IgnoredVariables, AreNotThoseThatAreReadOrThatARankHandsOn) {
  EXPECT_THAT(IgnoredVariables({{"DTRUN_LOG", "debug"},
                                {"DTRUN_LIBRARY", "libdtrun.so.1"},
                                {"DTRUN_CONFIG_JOB_GRACE", "3s"},
                                {"PATH", "/bin"}},
                               kOptions, {"gloo"}),
              IsEmpty());
  EXPECT_THAT(IgnoredVariables({{"DTRUN_RANK", "3"}, {"DTRUN_JOB_KEY", "0"}}, kOptions, {"gloo"}), IsEmpty());
}

TEST(UnusedDistribution, IsToldWhereItWouldMoveRanks) {
  const auto told = [](const std::string& order, const std::vector<int>& ranks) {
    return UnusedDistribution({{"SLURM_DISTRIBUTION", order}, {"SLURM_DIST_PLANESIZE", "2"}}, ranks);
  };
  EXPECT_THAT(told("cyclic", {2, 1}), ::testing::StartsWith("SLURM_DISTRIBUTION=cyclic is ignored"));
  EXPECT_THAT(told("cyclic:block", {1, 2}), ::testing::StartsWith("SLURM_DISTRIBUTION=cyclic:block is"));
  EXPECT_THAT(told("plane", {3, 3}), ::testing::StartsWith("SLURM_DISTRIBUTION=plane is ignored"));
  EXPECT_EQ(told("plane", {2, 2}), "");
  EXPECT_EQ(told("cyclic", {1, 1}), "");
  EXPECT_EQ(told("cyclic", {4}), "");
  EXPECT_EQ(told("block:cyclic", {4, 4}), "");
  EXPECT_EQ(told("arbitrary", {4, 4}), "");
  EXPECT_EQ(UnusedDistribution({}, {4, 4}), "");
}

TEST(UnusedMasterPort, IsToldUnlessItIsAnOuterLaunchersOrTheJobs) {
  EXPECT_EQ(UnusedMasterPort({{"MASTER_PORT", "29500"}}, {}),
            "MASTER_PORT=29500 is not used, and rank 0 gets a free port; to keep it, export "
            "DTRUN_CONFIG_JOB_MASTER_PORT=29500 in its place");
  for (const std::string no_port : {"99999", "abc", "-1", "0", ""}) {
    EXPECT_EQ(UnusedMasterPort({{"MASTER_PORT", no_port}}, {}),
              "MASTER_PORT=" + no_port +
                  " is not used, and rank 0 gets a free port: it is not a port from 1 to 65535; unset it");
  }
  EXPECT_EQ(UnusedMasterPort({}, {}), "");
  EXPECT_EQ(UnusedMasterPort({{"MASTER_PORT", "1"}, {"RANK", "0"}}, {}), "");
  EXPECT_EQ(UnusedMasterPort({{"MASTER_PORT", "1"}, {"DTRUN_JOB_KEY", "0"}}, {}), "");
  EXPECT_EQ(UnusedMasterPort({{"MASTER_PORT", "1"}}, {{"MASTER_PORT", "2"}}), "");
}

}  // namespace
}  // namespace dtrun::plan
