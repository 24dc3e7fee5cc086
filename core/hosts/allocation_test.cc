#include "core/hosts/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::hosts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Detected(const Environment& environment) {
  const auto platform = DetectPlatform(environment);
  return platform.ok() ? *platform : "error: " + platform.error().text;
}

TEST(DetectPlatform, KnowsAPlatformByItsOwnVariables) {
  EXPECT_EQ(Detected({{"SLURM_JOB_NODELIST", "n1"}}), "slurm");
  EXPECT_EQ(Detected({{"OMPI_COMM_WORLD_RANK", "0"}}), "openmpi");
  EXPECT_EQ(Detected({{"PMI_RANK", "0"}}), "pmi");
  EXPECT_EQ(Detected({{"CLUSTER_SPEC", "{}"}, {"RANK", "0"}}), "vertex");
  EXPECT_EQ(Detected({{"PET_NNODES", "2"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}}), "kubeflow");
  EXPECT_EQ(Detected({{"TORCHELASTIC_RUN_ID", "r"}, {"RANK", "0"}}), "torchrun");
  EXPECT_EQ(Detected({{"K_MPI_JOB_ROLE", "launcher"}}), "mpijob");
}

TEST(DetectPlatform, AnMpiLauncherOfAPlatformIsThatPlatform) {
  EXPECT_EQ(Detected({{"AZ_BATCH_MASTER_NODE", "a:1"}, {"OMPI_COMM_WORLD_RANK", "0"}}), "azureml");
  EXPECT_EQ(Detected({{"SLURM_JOB_NODELIST", "n1"},
                      {"SLURM_STEP_NODELIST", "n1"},
                      {"SLURM_PROCID", "1"},
                      {"PMI_RANK", "1"}}),
            "slurm");
}

TEST(DetectPlatform, SeveralPlatformsAreAskedAbout) {
  EXPECT_THAT(Detected({{"SLURM_JOB_NODELIST", "n1"}, {"OMPI_COMM_WORLD_RANK", "0"}}),
              AllOf(HasSubstr("slurm (by SLURM_JOB_NODELIST), openmpi (by OMPI_COMM_WORLD_RANK)"),
                    HasSubstr("say which one")));
  EXPECT_THAT(Detected({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_PROCID", "0"}, {"PMI_RANK", "0"}}),
              HasSubstr("slurm (by SLURM_JOB_NODELIST), pmi (by PMI_RANK)"));
}

TEST(DetectPlatform, ABareRankIsNeverGuessed) {
  EXPECT_THAT(Detected({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("RANK=1, WORLD_SIZE=2 set, but nothing says by whom"), HasSubstr("\"gcp\"")));
}

TEST(DetectPlatform, NothingIsNotFound) {
  const auto platform = DetectPlatform({{"HOME", "/root"}, {"PMI_RANK", ""}});
  ASSERT_FALSE(platform.ok());
  EXPECT_EQ(platform.error().code, DTRUN_NOT_FOUND);
}

TEST(FromEnvironment, ReadsTheNamedPlatform) {
  const Environment host = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}};
  EXPECT_EQ(FromEnvironment(host, "gcp")->own_index, 1);
  EXPECT_EQ(FromEnvironment({{"SLURM_JOB_NODELIST", "n[1-2]"}}, "auto")->hosts.size(), 2u);
}

TEST(FromEnvironment, SuggestsTheNearestPlatform) {
  const auto allocation = FromEnvironment({}, "slrum");
  ASSERT_FALSE(allocation.ok());
  EXPECT_THAT(allocation.error().text, HasSubstr("did you mean \"slurm\"?"));
  EXPECT_THAT(FromEnvironment({}, "x").error().text, HasSubstr("there are auto, slurm, openmpi"));
}

TEST(Platforms, ReportWhatIsMissingInAnEmptyEnvironment) {
  for (const Platform& platform : Platforms()) {
    const auto allocation = platform.read({});
    ASSERT_FALSE(allocation.ok()) << platform.name;
    EXPECT_THAT(allocation.error().text,
                AllOf(HasSubstr(std::string("\"") + platform.name + "\": "), HasSubstr("unset")));
  }
}

TEST(RendezvousPort, IsNoPortOfTheRanksAndFarFromItsNeighbours) {
  EXPECT_EQ(RendezvousPort(29500), 14517);
  for (int port = 1; port <= 65535; ++port) {
    const int rendezvous = RendezvousPort(port);
    ASSERT_NE(rendezvous, port);
    ASSERT_GE(rendezvous, 10'000);
    ASSERT_LE(rendezvous, 20'000);
    ASSERT_NE(rendezvous, RendezvousPort(port + 1));
  }
}

TEST(Platforms, SayHowTheirHostsComeToShareAKey) {
  for (const Platform& platform : Platforms()) {
    EXPECT_EQ(std::string_view(platform.sharing).empty(), std::string_view(platform.name) == "mpijob")
        << platform.name;
  }
}

}  // namespace
}  // namespace dtrun::hosts
